// Rows of this rank's experts from the tokens of all ep ranks, and back
// (docs/model/mixture_of_experts.md#dispatch-by-gathering). N tokens of P ranks, k slots each: slot = token * k + j. X
// rows for the L local experts; order[row] is the slot of the row.
//
//   select_rows          n [P s,B,H], weights [N,k], ids i64 [N,k], counts i64 [P,L] on the host
//                        -> rows [X,H], row_weights [X], order i64 [X]
//   select_rows_grad     drows, drow_weights, order -> dn [P s,B,H], dweights [N,k]
//   combine_rows         out [X,H], order -> y [P s,B,H], the sum over the rows of each token that are here
//   combine_rows_grad    dy [P s,B,H], order -> dout [X,H]
//
// Rows are those that permute_rows and all_to_all_v would bring, in the same order. Rows are moved in their dtype. The
// sum over a token's rows is computed in fp32 (fp64 for fp64) in the order of slots and rounded once: it is this rank's
// term of the sum over ep.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// The sum over the rows of each token, [P s,B,H]. A slot without a row here reads a row of zeros.
at::Tensor SumOfTokens(const Instruction& instruction, const at::Tensor& rows, const at::Tensor& order) {
  const int64_t k = instruction.integer("top_k"), sequence = instruction.integer("sequence"),
                samples = instruction.integer("samples"), width = rows.size(1), here = rows.size(0);
  const at::Tensor row_of_slot = at::full({sequence * samples, k}, here, order.options());
  row_of_slot.view({-1}).scatter_(0, order, at::arange(here, order.options()));
  const at::Tensor padded = at::cat({rows, at::zeros({1, width}, rows.options())});
  at::Tensor sum = Wide(padded.index_select(0, row_of_slot.select(1, 0))).clone();
  for (int64_t j = 1; j < k; ++j) sum.add_(padded.index_select(0, row_of_slot.select(1, j)));
  return Narrow(sum, rows).view({sequence, samples, width});
}

}  // namespace

Tensors RunSelectRows(const ComputeContext& context) {
  const at::Tensor &weights = context.inputs[1], &ids = context.inputs[2], counts = context.inputs[3].cpu();
  const int64_t ranks = counts.size(0), local = counts.size(1), slots = ids.numel(), k = ids.size(1);
  const int64_t rows = counts.sum().item<int64_t>(), first = context.call.ep_rank * local;
  TORCH_CHECK(ranks == context.call.ep && slots % ranks == 0 && rows <= slots, "row counts ", counts.sizes(), " of ",
              rows, " rows do not fit ", slots, " slots of ", context.call.ep, " ranks");
  // Rows by source, then local expert; the sort is stable, so by token within an expert. Slots of other ranks' experts
  // come last.
  const at::Tensor source = at::arange(slots, ids.options()).div_(slots / ranks, "floor");
  const at::Tensor expert = ids.reshape({-1}) - first;
  const at::Tensor key = at::where((expert >= 0).logical_and_(expert < local), source * local + expert, ranks * local);
  const auto [sorted, slot] = key.sort(std::optional<bool>(true), 0, false);
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
