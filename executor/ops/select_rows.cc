// Rows of this rank's experts from the tokens of all ep ranks, and back
// (docs/model/mixture_of_experts.md#dispatch-by-gathering). N tokens of P ranks, k slots each: slot = token * k + j. X
// rows for the L local experts; order[row] is the slot of the row.
//
//   select_rows          n [P s,B,H], weights [N,k], ids i64 [N,k], counts i64 [P,L] on the host
//                        -> rows [X,H], row_weights [X], order i64 [X]
//   select_rows_grad     drows, drow_weights, order -> dn wide [P s,B,H], dweights [N,k]
//   combine_rows         out [X,H], order -> y wide [P s,B,H], the sum over the rows of each token that are here
//   combine_rows_grad    dy [P s,B,H], order -> dout [X,H]
//
// Rows are those that permute_rows and all_to_all_v would bring, in the same order. Rows are moved in their dtype. The
// sum over a token's rows is this rank's term of the sum over ep. It is computed in fp32 (fp64 for fp64) in the order
// of slots, and is not rounded: scatter_tokens adds up the terms of all ranks first.
#include "executor/ops/select_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// The sum over the rows of each token, wide [P s,B,H]. A slot without a row here reads a row of zeros.
at::Tensor SumOfTokens(const Instruction& instruction, const at::Tensor& rows, const at::Tensor& order) {
  const int64_t k = instruction.integer("top_k"), sequence = instruction.integer("sequence"),
                samples = instruction.integer("samples"), width = rows.size(1), here = rows.size(0);
  const at::Tensor row_of_slot = at::full({sequence * samples, k}, here, order.options());
  row_of_slot.view({-1}).scatter_(0, order, at::arange(here, order.options()));
  const at::Tensor padded = at::cat({rows, at::zeros({1, width}, rows.options())});
  at::Tensor sum = at::zeros({sequence * samples, width}, rows.options().dtype(WideType(rows)));
  for (int64_t j = 0; j < k; ++j) sum.add_(padded.index_select(0, row_of_slot.select(1, j)));
  return sum.view({sequence, samples, width});
}

}  // namespace

at::Tensor OrderKeysOfSlots(const at::Tensor& ids, int64_t local, int64_t rank, int64_t ranks) {
  const at::Tensor source = at::arange(ids.numel(), ids.options()).div_(ids.numel() / ranks, "floor");
  const at::Tensor expert = ids.reshape({-1}) - rank * local;
  return at::where((expert >= 0).logical_and_(expert < local), source.mul_(local).add_(expert), ranks * local);
}

int64_t RowsHere(const ComputeContext& context) {
  const at::Tensor &ids = context.inputs[2], counts = context.inputs[3].cpu();
  const int64_t ranks = counts.size(0), slots = ids.numel(), rows = counts.sum().item<int64_t>();
  TORCH_CHECK(ranks == context.call.ep && slots % ranks == 0 && rows <= slots, "row counts ", counts.sizes(), " of ",
              rows, " rows do not fit ", slots, " slots of ", context.call.ep, " ranks");
  return rows;
}

Tensors RunSelectRows(const ComputeContext& context) {
  const at::Tensor &weights = context.inputs[1], &ids = context.inputs[2], counts = context.inputs[3].cpu();
  const int64_t ranks = counts.size(0), local = counts.size(1), k = ids.size(1), rows = RowsHere(context);
  // The sort is stable, so rows are by token within an expert. Slots of other ranks' experts come last.
  const auto [sorted, slot] =
      OrderKeysOfSlots(ids, local, context.call.ep_rank, ranks).sort(std::optional<bool>(true), 0, false);
  if (ids.is_cpu()) {
    TORCH_CHECK(at::bincount(sorted, {}, ranks * local + 1).narrow(0, 0, ranks * local).equal(counts.reshape({-1})),
                "the row counts of the ep ranks are not those of the gathered choices");
  }
  const at::Tensor order = slot.narrow(0, 0, rows).clone();
  return {AsRows(context.inputs[0]).index_select(0, order.div(k, "floor")),
          weights.reshape({-1}).index_select(0, order), order};
}

Tensors RunSelectRowsGrad(const ComputeContext& context) {
  const at::Tensor &drow_weights = context.inputs[1], &order = context.inputs[2];
  const at::Tensor dn = SumOfTokens(context.instruction, context.inputs[0], order);
  const at::Tensor dweights =
      at::zeros({dn.size(0) * dn.size(1), context.instruction.integer("top_k")}, drow_weights.options());
  dweights.view({-1}).scatter_(0, order, drow_weights);
  return {dn, dweights};
}

Tensors RunCombineRows(const ComputeContext& context) {
  return {SumOfTokens(context.instruction, context.inputs[0], context.inputs[1])};
}

Tensors RunCombineRowsGrad(const ComputeContext& context) {
  const at::Tensor token = context.inputs[1].div(context.instruction.integer("top_k"), "floor");
  return {AsRows(context.inputs[0]).index_select(0, token)};
}

}  // namespace planwright::executor::ops
