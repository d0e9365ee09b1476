// The guard of a bridge (docs/layouts/bridges.md#mean-square).
//
//   square_sum   x of any shape -> squares f64 [1], the sum of the squares of its elements; elements i64 [1]
//
// Squares and their sum are fp64, so a sum over rows does not depend on how they are dealt to ranks.
#include <ATen/ops/dot.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {
namespace {

// The elements are widened in parts, so that no second copy of all rows exists: 32 MB in fp64.
constexpr int64_t kElementsPerPart = int64_t{1} << 22;

}  // namespace

Tensors RunSquareSum(const ComputeContext& context) {
  const at::Tensor x = context.inputs[0].reshape({context.inputs[0].numel()});
  at::Tensor squares = at::zeros({1}, x.options().dtype(at::kDouble));
  for (int64_t first = 0; first < x.numel(); first += kElementsPerPart) {
    const at::Tensor part = x.narrow(0, first, std::min(kElementsPerPart, x.numel() - first)).to(at::kDouble);
    squares.add_(part.dot(part));
  }
  return {squares, at::full({1}, x.numel(), x.options().dtype(at::kLong))};
}

}  // namespace planwright::executor::ops
