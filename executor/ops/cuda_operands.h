// From tensors to what the kernels of executor/kernels take. Only files of the CUDA build include this.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_bf16.h>

namespace planwright::executor::ops {

// Whether the fast form of an operation may be used: bf16 on a GPU. Each has conditions of its own besides, on widths.
inline bool OnGpuInBf16(const at::Tensor& x) { return x.is_cuda() && x.scalar_type() == at::kBFloat16; }

// The elements of a contiguous tensor. c10::Error if it has another dtype, is not contiguous, or is not on a GPU.
template <typename T>
T* Elements(const at::Tensor& x);

inline void CheckElements(const at::Tensor& x, at::ScalarType type) {
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == type, "a kernel takes contiguous ", type,
              " on a GPU, not ", x.toString(), " ", x.sizes(), " with strides ", x.strides());
}

template <>
inline __nv_bfloat16* Elements<__nv_bfloat16>(const at::Tensor& x) {
  CheckElements(x, at::kBFloat16);
  return static_cast<__nv_bfloat16*>(x.data_ptr());
}
template <>
inline float* Elements<float>(const at::Tensor& x) {
  CheckElements(x, at::kFloat);
  return static_cast<float*>(x.data_ptr());
}
template <>
inline double* Elements<double>(const at::Tensor& x) {
  CheckElements(x, at::kDouble);
  return static_cast<double*>(x.data_ptr());
}
template <>
inline int* Elements<int>(const at::Tensor& x) {
  CheckElements(x, at::kInt);
  return static_cast<int*>(x.data_ptr());
}
template <>
inline int64_t* Elements<int64_t>(const at::Tensor& x) {
  CheckElements(x, at::kLong);
  return static_cast<int64_t*>(x.data_ptr());
}

inline cudaStream_t CurrentStream() { return at::cuda::getCurrentCUDAStream(); }

}  // namespace planwright::executor::ops
