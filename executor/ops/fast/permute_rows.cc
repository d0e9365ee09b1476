// Tokens to expert rows and back in bf16, with an order by counting and rows moved 16 bytes at a time
// (executor/kernels/slot_order.h, row_moves.h). executor/ops/permute_rows.cc has the plain forms, which define operands
// and results.
//
// All four operations use the row of each slot, the inverse of `order`. Where one token becomes k rows, it is read once
// and written k times; a gather by row would read it k times.
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "executor/kernels/row_moves.h"
#include "executor/kernels/slot_order.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

constexpr int64_t kTooManySlots = int64_t{1} << 31;

// The first input has the rows. `slots`: an input with a number for each slot.
bool TakesRows(const ComputeBinding& binding, const ValueType& slots) {
  return PlannedInBf16(binding, 1) && InWholeVectors(*binding.inputs[0]) &&
         PlannedElements(slots).value_or(kTooManySlots) < kTooManySlots;
}

// Whether there are rows, and kernels may move them as they lie.
bool HasRowsForKernels(const ComputeContext& context) {
  const at::Tensor& rows = context.inputs[0];
  return rows.numel() > 0 && HasAlignedRows(rows);
}

// What all ids are below. An operation without a module, as in tests, is taken too: a larger expert stops the device.
int64_t ExpertsOf(const Module* module) { return module == nullptr ? kMostOrderedExperts : module->experts(); }

// The row of each slot, i32. With row_values [rows], slot_values get them by slot.
at::Tensor RowsOfSlots(const at::Tensor& order, const float* row_values = nullptr, float* slot_values = nullptr) {
  const at::Tensor slots = order.contiguous(), row_of_slot = at::empty_like(slots, at::kInt);
  LaunchRowsOfSlots(Elements<int64_t>(slots), row_values, slots.numel(), Elements<int>(row_of_slot), slot_values,
                    CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return row_of_slot;
}

// The row of each token at the rows of its slots.
at::Tensor Spread(const at::Tensor& source, const at::Tensor& row_of_slot) {
  const int64_t width = source.size(-1), tokens = source.numel() / width, slots = row_of_slot.numel();
  const at::Tensor rows = at::empty({slots, width}, source.options());
  LaunchSpreadRows(Elements<__nv_bfloat16>(source), {tokens, slots / tokens, width, Elements<int>(row_of_slot)},
                   Elements<__nv_bfloat16>(rows), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return rows;
}

// The sum over the k rows of each token, [s,B,H].
at::Tensor SumOverSlots(const Instruction& instruction, const at::Tensor& rows, const at::Tensor& row_of_slot) {
  const int64_t top_k = instruction.integer("top_k"), width = rows.size(1);
  const at::Tensor sums =
      at::empty({instruction.integer("sequence"), instruction.integer("samples"), width}, rows.options());
  TORCH_CHECK(sums.size(0) * sums.size(1) * top_k == rows.size(0), rows.size(0), " rows are not ", top_k,
              " for each token of ", sums.sizes());
  LaunchSumRows(Elements<__nv_bfloat16>(rows), {rows.size(0) / top_k, top_k, width, Elements<int>(row_of_slot)},
                Elements<__nv_bfloat16>(sums), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return sums;
}

}  // namespace

bool TakesPermuteRows(const ComputeBinding& binding) {
  return TakesRows(binding, *binding.inputs[2]) && binding.inputs[1]->dtype == DType::kFp32 &&
         ExpertsOf(binding.module) <= kMostOrderedExperts;
}

bool TakesPermuteRowsGrad(const ComputeBinding& binding) {
  return TakesRows(binding, *binding.inputs[2]) && binding.inputs[1]->dtype == DType::kFp32;
}

bool TakesUnpermuteRows(const ComputeBinding& binding) { return TakesRows(binding, *binding.inputs[1]); }
bool TakesUnpermuteRowsGrad(const ComputeBinding& binding) { return TakesRows(binding, *binding.inputs[1]); }

Tensors FastPermuteRows(const ComputeContext& context) {
  if (!HasRowsForKernels(context)) return RunPermuteRows(context);
  const at::Tensor weights = context.inputs[1].contiguous(), ids = context.inputs[2].contiguous();
  const int64_t slots = ids.numel(), experts = ExpertsOf(context.call.module);
  const at::Tensor order = at::empty({slots}, ids.options()), row_weights = at::empty({slots}, weights.options()),
                   row_of_slot = at::empty({slots}, ids.options().dtype(at::kInt)),
                   counts = at::empty({PartsOfSlots(slots), experts}, row_of_slot.options());
  LaunchOrderSlots(Elements<int64_t>(ids), Elements<float>(weights), slots, experts, Elements<int>(counts),
                   {Elements<int64_t>(order), Elements<int>(row_of_slot), Elements<float>(row_weights)},
                   CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {Spread(context.inputs[0], row_of_slot), row_weights, order};
}

Tensors FastPermuteRowsGrad(const ComputeContext& context) {
  if (!HasRowsForKernels(context)) return RunPermuteRowsGrad(context);
  const at::Tensor drow_weights = context.inputs[1].contiguous(), &order = context.inputs[2];
  const int64_t top_k = context.instruction.integer("top_k");
  const at::Tensor dweights = at::empty({order.size(0) / top_k, top_k}, drow_weights.options());
  const at::Tensor row_of_slot = RowsOfSlots(order, Elements<float>(drow_weights), Elements<float>(dweights));
  return {SumOverSlots(context.instruction, context.inputs[0], row_of_slot), dweights};
}

Tensors FastUnpermuteRows(const ComputeContext& context) {
  if (!HasRowsForKernels(context)) return RunUnpermuteRows(context);
  return {SumOverSlots(context.instruction, context.inputs[0], RowsOfSlots(context.inputs[1]))};
}

Tensors FastUnpermuteRowsGrad(const ComputeContext& context) {
  if (!HasRowsForKernels(context)) return RunUnpermuteRowsGrad(context);
  return {Spread(context.inputs[0], RowsOfSlots(context.inputs[1]))};
}

}  // namespace planwright::executor::ops
