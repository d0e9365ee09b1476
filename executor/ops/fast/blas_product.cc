#include "executor/ops/fast/blas_product.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/Exceptions.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <cublasLt.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// What is done with an element of the product: something is added, gelu is taken of it, or it is multiplied by the
// slope of gelu.
enum class Epilogue { kSum, kGelu, kGeluSlope };

const char* NameOf(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kSum: return "adds a matrix";
    case Epilogue::kGelu: return "takes gelu";
    case Epilogue::kGeluSlope: return "multiplies by the slope of gelu";
  }
  return "";
}

// What the choice of a kernel depends on. Each row of x, of `in` elements, makes a row of the result, of `out`.
struct Shape {
  int64_t rows = 0;  // RoundRows of them
  int64_t in = 0, out = 0;
  uint32_t alignment = 256;  // of the operand with the least, in bytes; more than 256 makes no difference
  Epilogue epilogue{};
  bool biased = false;
  int device = 0;

  auto operator<=>(const Shape&) const = default;
};

// Of many rows the nearest multiple of 8192. Among neighbours cuBLASLt's first choices differ by up to a third in
// speed: on an H200, products of 22528 and of 25600 rows with a weight [1024,1024] take 0.11 ms and more, of 24576 rows
// 0.087. Those of round numbers were never the slow ones. And images of several sizes need few choices.
constexpr int64_t kMany = 8192;
int64_t RoundRows(int64_t rows) { return rows < kMany ? rows : (rows + kMany / 2) / kMany * kMany; }

// What a kernel may take of the workspace with so many rows, if it is to have enough with all that are rounded to them:
// parts of a sum that are made apart need memory for each row.
uint64_t WorkspaceOf(int64_t rounded_rows, size_t workspace) {
  if (rounded_rows < kMany) return workspace;
  const auto rows = static_cast<uint64_t>(rounded_rows);
  return uint64_t{workspace} * rows / (rows + kMany / 2);
}

// The largest power of two that divides an operand's address, up to 256.
uint32_t AlignmentOf(const at::Tensor& x) {
  const auto address = reinterpret_cast<uintptr_t>(x.const_data_ptr());
  return static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

// What the epilogue reads, or writes, beside the product. Null: it has none.
struct Beside {
  const void* bias = nullptr;
  const void* pre = nullptr;  // of gelu: what it is taken of, which is written; of its slope: where it is taken
};

// What lies by rows for LibTorch lies by columns for cuBLAS. There it is result^T [out,rows] = W x^T [in,rows]. The
// memory of a weight [out,in] holds the transpose of that W, that of a weight [in,out] holds it as it is. Each row of
// result^T has one element of the bias. What is added, and pre, lie as the result.
struct Problem {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t weight, x, result;

  Problem(const Shape& shape, int64_t rows, const Beside& beside) {
    const bool slope = shape.epilogue == Epilogue::kGeluSlope;
    const auto lay_out = [](cublasLtMatrixLayoutOpaque_t& matrix, int64_t height, int64_t columns) {
      TORCH_CUDABLAS_CHECK(cublasLtMatrixLayoutInit(&matrix, CUDA_R_16BF, height, columns, height));
    };
    lay_out(x, shape.in, rows);
    lay_out(result, shape.out, rows);
    slope ? lay_out(weight, shape.out, shape.in) : lay_out(weight, shape.in, shape.out);
    TORCH_CUDABLAS_CHECK(cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    if (!slope) Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CodeOf(shape));
    if (shape.biased) Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, beside.bias);
    if (shape.epilogue == Epilogue::kSum) return;
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside.pre);
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, shape.out);
  }

 private:
  static cublasLtEpilogue_t CodeOf(const Shape& shape) {
    switch (shape.epilogue) {
      case Epilogue::kSum: return shape.biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
      case Epilogue::kGelu: return shape.biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
      case Epilogue::kGeluSlope: return CUBLASLT_EPILOGUE_DGELU;
    }
    TORCH_CHECK(false, "no such epilogue");
  }

  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    TORCH_CUDABLAS_CHECK(cublasLtMatmulDescSetAttribute(&product, attribute, &value, sizeof(value)));
  }
};

cublasLtMatmulAlgo_t Choose(cublasLtHandle_t handle, const Shape& shape, const Beside& beside, size_t workspace) {
  Problem problem(shape, shape.rows, beside);
  cublasLtMatmulPreferenceOpaque_t wanted;
  TORCH_CUDABLAS_CHECK(cublasLtMatmulPreferenceInit(&wanted));
  const auto want = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    TORCH_CUDABLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(&wanted, attribute, &value, sizeof(value)));
  };
  want(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, WorkspaceOf(shape.rows, workspace));
  // Where parts of a sum are made apart, they are kept in fp32.
  want(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    want(operand, shape.alignment);
  cublasLtMatmulHeuristicResult_t best;
  int found = 0;
  TORCH_CUDABLAS_CHECK(cublasLtMatmulAlgoGetHeuristic(handle, &problem.product, &problem.weight, &problem.x,
                                                      &problem.result, &problem.result, &wanted, 1, &best, &found));
  TORCH_CHECK(found == 1 && best.state == CUBLAS_STATUS_SUCCESS, "cuBLASLt has no product of [", shape.rows, ",",
              shape.in, "] that makes rows of ", shape.out, " in bf16 and ", NameOf(shape.epilogue),
              shape.biased ? ", with a bias" : "");
  return best.algo;
}

// The choice costs tens of microseconds of the host, and all layers of a microbatch ask for the same few. Where few
// rows are others in each microbatch, old shapes never come again: the bound keeps them from piling up.
cublasLtMatmulAlgo_t AlgorithmFor(cublasLtHandle_t handle, const Shape& shape, const Beside& beside, size_t workspace) {
  constexpr size_t kMostShapes = 256;
  static std::mutex mutex;
  static std::map<Shape, cublasLtMatmulAlgo_t> chosen;
  const std::lock_guard lock(mutex);
  if (const auto known = chosen.find(shape); known != chosen.end()) return known->second;
  const cublasLtMatmulAlgo_t algorithm = Choose(handle, shape, beside, workspace);
  if (chosen.size() == kMostShapes) chosen.clear();
  chosen.emplace(shape, algorithm);
  return algorithm;
}

// `result`: gets the product. `added`: to it, in a sum; else undefined, as `bias` and `pre` where there is none.
void Multiply(Epilogue epilogue, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& added,
              const at::Tensor& bias, const at::Tensor& pre, const at::Tensor& result) {
  Shape shape = {.in = x.size(-1),
                 .out = result.size(-1),
                 .epilogue = epilogue,
                 .biased = bias.defined(),
                 .device = x.get_device()};
  const int64_t rows = x.numel() / shape.in;
  shape.rows = RoundRows(rows);
  TORCH_CHECK(weight.numel() == shape.in * shape.out && result.numel() == rows * shape.out, "a product of rows ",
              x.sizes(), " with a weight ", weight.sizes(), " has not the shape ", result.sizes());
  TORCH_CHECK(!bias.defined() || bias.numel() == shape.out, "a bias ", bias.sizes(), " is none of a weight ",
              weight.sizes());
  for (const at::Tensor* operand : {&x, &weight, &added, &bias, &pre, &result}) {
    if (operand->defined()) shape.alignment = std::min(shape.alignment, AlignmentOf(*operand));
  }

  // The workspace that LibTorch itself has for products of this thread on this stream.
  cublasLtHandle_t handle = at::cuda::getCurrentCUDABlasLtHandle();
  const size_t workspace = at::cuda::getCUDABlasLtWorkspaceSize();
  const Beside beside = {bias.defined() ? bias.const_data_ptr() : nullptr,
                         pre.defined() ? pre.const_data_ptr() : nullptr};
  Problem problem(shape, rows, beside);
  const cublasLtMatmulAlgo_t algorithm = AlgorithmFor(handle, shape, beside, workspace);
  const float one = 1, of_added = added.defined() ? 1 : 0;
  void* into = result.mutable_data_ptr();
  TORCH_CUDABLAS_CHECK(cublasLtMatmul(
      handle, &problem.product, &one, weight.const_data_ptr(), &problem.weight, x.const_data_ptr(), &problem.x,
      &of_added, added.defined() ? added.const_data_ptr() : into, &problem.result, into, &problem.result, &algorithm,
      at::cuda::getCUDABlasLtWorkspace(), workspace, at::cuda::getCurrentCUDAStream()));
}

}  // namespace

at::Tensor SummedProduct(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& residual,
                         const at::Tensor& bias) {
  at::Tensor sum = at::empty_like(residual);
  Multiply(Epilogue::kSum, x, weight, residual, bias, {}, sum);
  return sum;
}

GeluOfProduct ProductAndGelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor pre = at::empty(WithWidth(x, weight.size(0)), x.options());
  GeluOfProduct made = {pre, at::empty_like(pre)};
  Multiply(Epilogue::kGelu, x, weight, {}, bias, made.pre, made.gelu);
  return made;
}

at::Tensor ProductTimesGeluSlope(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& pre) {
  at::Tensor slope = at::empty_like(pre);
  Multiply(Epilogue::kGeluSlope, dy, weight, {}, {}, pre, slope);
  return slope;
}

}  // namespace planwright::executor::ops
