#include "executor/program/device_words.h"

#include <absl/strings/str_cat.h>
#include <torch/headeronly/version.h>

#include <fstream>
#include <sstream>

#ifdef PLANWRIGHT_CUDA
#include <ATen/cuda/CUDAContext.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#endif

namespace planwright::executor {
namespace {

// The value of a line "NAME : VALUE".
std::string ValueIn(const char* path, const std::string& name) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(name)) continue;
    if (line.find_first_not_of(" \t", name.size()) != colon) continue;  // a longer name
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin, line.find_last_not_of(" \t") + 1 - begin);
  }
  return "";
}

}  // namespace

std::string DeviceName(at::Device device) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) return at::cuda::getDeviceProperties(device.index())->name;
#endif
  const std::string model = device.is_cpu() ? ValueIn("/proc/cpuinfo", "model name") : "";
  return model.empty() ? "unknown" : model;
}

std::string DriverVersion(at::Device device) {
  if (!device.is_cuda()) return "";
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed ..."
  const std::string text = ValueIn("/proc/driver/nvidia/version", "NVRM version");
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool version =
        word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
  }
  return "";
}

std::string LibraryVersions(at::Device device) {
  std::string text = absl::StrCat("LibTorch ", TORCH_VERSION);
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) {
    return absl::StrCat(text, ", CUDA ", CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10, ", NCCL ", NCCL_MAJOR,
                        ".", NCCL_MINOR, ".", NCCL_PATCH);
  }
#endif
  if (device.is_cpu()) absl::StrAppend(&text, ", Gloo");
  return text;
}

}  // namespace planwright::executor
