// Tokens to rows sorted by expert, and back (facts 4). A slot is token * top_k + j; `order` holds the slot of each row.
// Every sum gathers the k rows of a token and adds them in slot order: nothing is scattered onto a shared place.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>

#include "executor/ops/handler.h"
#include "executor/ops/numerics.h"

namespace planwright::executor::ops {
namespace {

// Row of each slot.
at::Tensor RowsOfSlots(const at::Tensor& order) {
  return at::empty_like(order).scatter_(0, order, at::arange(order.size(0), order.options()));
}

// Sum over each token's k rows, [s,B,H].
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
  // stable: by expert, then token
  const at::Tensor order = std::get<1>(ids.reshape({-1}).sort(std::optional<bool>(true), 0, false));
  const at::Tensor token = order.div(ids.size(1), "floor");
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
