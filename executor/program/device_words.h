// What a rank's device and the libraries on it are called, for files of measured times.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace planwright::executor {

// "NVIDIA H200"; of a CPU its model. "unknown" where the system does not say.
std::string DeviceName(at::Device device);
// Of a GPU: "570.124.06". Empty for a CPU, and where the system does not say.
std::string DriverVersion(at::Device device);
// "LibTorch 2.11.0, CUDA 12.8, NCCL 2.27.5", or "LibTorch 2.11.0, Gloo".
std::string LibraryVersions(at::Device device);

}  // namespace planwright::executor
