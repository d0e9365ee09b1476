// Tokens of all ep ranks to expert rows and back in bf16, with an order by counting and rows moved 16 bytes at a time
// (executor/kernels/slot_order.h, row_moves.h). The host never waits. executor/ops/select_rows.cc has the plain forms,
// which define operands and results.
//
// A row here is read by the slot that has it; slots of experts of other ranks have none.
#include "executor/ops/select_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "executor/kernels/row_moves.h"
#include "executor/kernels/slot_order.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

bool TakesSelected(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && InWholeVectors(*binding.inputs[0]);
}

// Whether there are rows, and kernels may move them as they lie. Of instructions whose first input has the rows.
bool HasRowsHere(const ComputeContext& context) {
  return context.inputs[0].size(0) > 0 && HasAlignedRows(context.inputs[0]);
}

int64_t SlotsOf(const Instruction& instruction) {
  return instruction.integer("sequence") * instruction.integer("samples") * instruction.integer("top_k");
}

// Each of `order`'s slots is one of a token, whose row is copied.
at::Tensor RowsOfTokens(const at::Tensor& tokens, const at::Tensor& order, int64_t top_k) {
  const int64_t width = tokens.size(-1);
  const at::Tensor token = order.div(top_k, "floor"), rows = at::empty({order.size(0), width}, tokens.options());
  LaunchGatherRows(Elements<__nv_bfloat16>(tokens), Elements<int64_t>(token), rows.size(0),
                   width * tokens.element_size(), Elements<__nv_bfloat16>(rows), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return rows;
}

// The sum over the rows of each token, fp32 [P s,B,H]. With row_values [X], slot_values get them by slot.
at::Tensor SumOfTokens(const Instruction& instruction, const at::Tensor& rows, const at::Tensor& order,
                       const float* row_values = nullptr, float* slot_values = nullptr) {
  const int64_t top_k = instruction.integer("top_k"), sequence = instruction.integer("sequence"),
                samples = instruction.integer("samples"), width = rows.size(1);
  const at::Tensor slots = order.contiguous();
  const at::Tensor row_of_slot = at::full({SlotsOf(instruction)}, -1, slots.options().dtype(at::kInt));
  LaunchRowsOfSlots(Elements<int64_t>(slots), row_values, slots.numel(), Elements<int>(row_of_slot), slot_values,
                    CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const at::Tensor sums = at::empty({sequence, samples, width}, rows.options().dtype(at::kFloat));
  LaunchSumRowsHere(Elements<__nv_bfloat16>(rows), {sequence * samples, top_k, width, Elements<int>(row_of_slot)},
                    Elements<float>(sums), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return sums;
}

}  // namespace

bool TakesSelectRows(const ComputeBinding& binding) {
  const std::optional<int64_t> slots = PlannedElements(*binding.inputs[2]),
                               experts = PlannedElements(*binding.inputs[3]);
  return TakesSelected(binding) && binding.inputs[1]->dtype == DType::kFp32 && slots &&
         *slots <= std::numeric_limits<int>::max() && experts && *experts < kMostOrderedExperts;
}

bool TakesCombineRows(const ComputeBinding& binding) {
  return TakesSelected(binding) && SlotsOf(binding.instruction) <= std::numeric_limits<int>::max();
}

bool TakesSelectRowsGrad(const ComputeBinding& binding) {
  return TakesCombineRows(binding) && binding.inputs[1]->dtype == DType::kFp32;
}

bool TakesCombineRowsGrad(const ComputeBinding& binding) { return TakesSelected(binding); }

Tensors FastSelectRows(const ComputeContext& context) {
  const int64_t rows = RowsHere(context);
  if (rows == 0 || !HasAlignedRows(context.inputs[0])) return RunSelectRows(context);
  const at::Tensor weights = context.inputs[1].contiguous(), ids = context.inputs[2].contiguous();
  const int64_t slots = ids.numel(), keys = context.inputs[3].numel() + 1;  // one for all other slots
  const at::Tensor key = OrderKeysOfSlots(ids, context.inputs[3].size(1), context.call.ep_rank, context.call.ep);
  const at::Tensor order = at::empty({slots}, ids.options()), row_weights = at::empty({slots}, weights.options()),
                   row_of_slot = at::empty({slots}, ids.options().dtype(at::kInt)),
                   counts = at::empty({PartsOfSlots(slots), keys}, row_of_slot.options());
  LaunchOrderSlots(Elements<int64_t>(key), Elements<float>(weights), slots, keys, Elements<int>(counts),
                   {Elements<int64_t>(order), Elements<int>(row_of_slot), Elements<float>(row_weights)},
                   CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  // Copies: the rest would stay in memory until the backward.
  const at::Tensor here = order.narrow(0, 0, rows).clone();
  return {RowsOfTokens(context.inputs[0], here, ids.size(1)), row_weights.narrow(0, 0, rows).clone(), here};
}

Tensors FastSelectRowsGrad(const ComputeContext& context) {
  if (!HasRowsHere(context)) return RunSelectRowsGrad(context);
  const at::Tensor drow_weights = context.inputs[1].contiguous();
  const int64_t top_k = context.instruction.integer("top_k");
  const at::Tensor dweights = at::zeros({SlotsOf(context.instruction) / top_k, top_k}, drow_weights.options());
  const at::Tensor dn = SumOfTokens(context.instruction, context.inputs[0], context.inputs[2],
                                    Elements<float>(drow_weights), Elements<float>(dweights));
  return {dn, dweights};
}

Tensors FastCombineRows(const ComputeContext& context) {
  if (!HasRowsHere(context)) return RunCombineRows(context);
  return {SumOfTokens(context.instruction, context.inputs[0], context.inputs[1])};
}

Tensors FastCombineRowsGrad(const ComputeContext& context) {
  if (context.inputs[1].size(0) == 0 || !HasAlignedRows(context.inputs[0])) return RunCombineRowsGrad(context);
  return {RowsOfTokens(context.inputs[0], context.inputs[1], context.instruction.integer("top_k"))};
}

}  // namespace planwright::executor::ops
