// Tokens to rows sorted by expert, and back (docs/model/mixture_of_experts.md#token-dispatch). Each token has k slots,
// one for each of its experts: slot = token * k + j. There is one row for each slot, and order[row] is its slot
// (docs/model/mixture_of_experts.md#order-of-rows).
//
//   permute_rows          n [s,B,H], weights [T,k], ids i64 [T,k] -> rows [T k,H], row_weights [T k], order i64 [T k]
//   permute_rows_grad     drows, drow_weights, order -> dn [s,B,H], dweights [T,k]
//   unpermute_rows        out [T k,H], order -> y [s,B,H], the sum over the rows of each token
//   unpermute_rows_grad   dy [s,B,H], order -> dout [T k,H]
//
// Rows are moved in their dtype. The sum over a token's rows is computed in fp32 (fp64 for fp64) and rounded once. It
// gathers the k rows of each token and adds them in the order of slots. A scatter-add of rows to tokens would add in
// any order on a GPU, and the result would differ between runs and layouts. The backward reads only `order`.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// The row of each slot: the inverse of the permutation `order`.
at::Tensor RowsOfSlots(const at::Tensor& order) {
  return at::empty_like(order).scatter_(0, order, at::arange(order.size(0), order.options()));
}

// The sum over the k rows of each token, [s,B,H].
at::Tensor SumOverSlots(const Instruction& instruction, const at::Tensor& rows, const at::Tensor& row_of_slot) {
  const int64_t top_k = instruction.integer("top_k"), width = rows.size(1);
  const at::Tensor slots = rows.index_select(0, row_of_slot).view({rows.size(0) / top_k, top_k, width});
  at::Tensor sum = Wide(slots.select(1, 0)).clone();
  for (int64_t j = 1; j < top_k; ++j) sum.add_(slots.select(1, j));
  return Narrow(sum, rows).view({instruction.integer("sequence"), instruction.integer("samples"), width});
}

}  // namespace

Tensors RunPermuteRows(const ComputeContext& context) {
  const at::Tensor &weights = context.inputs[1], &ids = context.inputs[2];
  // Slots ascend with tokens and the sort is stable, so rows are ordered by expert, then by token.
  const at::Tensor order = std::get<1>(ids.reshape({-1}).sort(std::optional<bool>(true), 0, false));
  const at::Tensor token = order.div(ids.size(1), "floor");  // of each row
  return {AsRows(context.inputs[0]).index_select(0, token), weights.reshape({-1}).index_select(0, order), order};
}

Tensors RunPermuteRowsGrad(const ComputeContext& context) {
  const at::Tensor row_of_slot = RowsOfSlots(context.inputs[2]);
  const int64_t top_k = context.instruction.integer("top_k");
  const at::Tensor dweights = context.inputs[1].index_select(0, row_of_slot).view({row_of_slot.size(0) / top_k, top_k});
  return {SumOverSlots(context.instruction, context.inputs[0], row_of_slot), dweights};
}

Tensors RunUnpermuteRows(const ComputeContext& context) {
  return {SumOverSlots(context.instruction, context.inputs[0], RowsOfSlots(context.inputs[1]))};
}

Tensors RunUnpermuteRowsGrad(const ComputeContext& context) {
  const at::Tensor token = context.inputs[1].div(context.instruction.integer("top_k"), "floor");
  return {AsRows(context.inputs[0]).index_select(0, token)};
}

}  // namespace planwright::executor::ops
