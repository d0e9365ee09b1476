// From tensors to what the kernels of executor/kernels take. Only files of the CUDA build include this.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_bf16.h>

namespace planwright::executor::ops {

// LibTorch's name of an element type of a kernel.
template <typename T>
inline constexpr at::ScalarType kScalarType = at::ScalarType::Undefined;
template <>
inline constexpr at::ScalarType kScalarType<__nv_bfloat16> = at::kBFloat16;
template <>
inline constexpr at::ScalarType kScalarType<float> = at::kFloat;
template <>
inline constexpr at::ScalarType kScalarType<double> = at::kDouble;
template <>
inline constexpr at::ScalarType kScalarType<int> = at::kInt;
template <>
inline constexpr at::ScalarType kScalarType<int64_t> = at::kLong;

// The elements of a contiguous tensor. c10::Error if it has another dtype, is not contiguous, or is not on a GPU.
template <typename T>
T* Elements(const at::Tensor& x) {
  static_assert(kScalarType<T> != at::ScalarType::Undefined, "no kernel takes this type");
  TORCH_CHECK(x.is_cuda() && x.is_contiguous() && x.scalar_type() == kScalarType<T>, "a kernel takes contiguous ",
              kScalarType<T>, " on a GPU, not ", x.toString(), " ", x.sizes(), " with strides ", x.strides());
  return static_cast<T*>(x.data_ptr());
}

inline cudaStream_t CurrentStream() { return at::cuda::getCurrentCUDAStream(); }

}  // namespace planwright::executor::ops
