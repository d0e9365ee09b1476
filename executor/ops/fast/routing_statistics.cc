// The logged numbers about routing, in one or two kernels each (executor/kernels/routing_statistics.h).
// executor/ops/routing_statistics.cc has the plain forms, which define them.
#include "executor/kernels/routing_statistics.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/fast_form.h"

namespace planwright::executor::ops {

bool TakesSequenceAuxLoss(const ComputeBinding& binding) { return binding.inputs[0]->dtype == DType::kFp32; }

// Integers alone, in every precision.
bool TakesRoutingFingerprint(const ComputeBinding& /*binding*/) { return true; }

Tensors FastSequenceAuxLoss(const ComputeContext& context) {
  const at::Tensor probs = context.inputs[0].contiguous(), counts = context.inputs[1].contiguous();
  const int64_t samples = counts.size(0), experts = counts.size(1);
  const auto sequence = static_cast<double>(context.instruction.integer("sequence")),
             k = static_cast<double>(context.instruction.integer("top_k"));
  const double factor = static_cast<double>(experts) / (k * sequence * sequence);
  const at::Tensor parts = at::empty({kAuxLossParts}, probs.options().dtype(at::kDouble)),
                   aux = at::empty({1}, parts.options());
  LaunchSequenceAuxLoss(Elements<float>(probs), Elements<int64_t>(counts), probs.size(0), samples, experts, factor,
                        Elements<double>(parts), Elements<double>(aux), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {aux};
}

Tensors FastRoutingFingerprint(const ComputeContext& context) {
  const at::Tensor ids = context.inputs[0].contiguous(), sum = at::zeros({1}, ids.options());
  const CallContext& call = context.call;
  // The positions of this rank: of its zigzag part over cp, the consecutive part over tp.
  const int64_t sequence = context.instruction.integer("sequence");
  int64_t own = sequence;  // of the cp coordinate
  FingerprintOffsets offsets;
  offsets.chunk = sequence;
  if (context.instruction.over_cp()) {
    own = sequence / call.cp;
    offsets.chunk = own / 2;  // chunks r and 2 cp - 1 - r
    offsets.shift = call.cp_rank * offsets.chunk;
    offsets.later_shift = (2 * call.cp - 2 - call.cp_rank) * offsets.chunk;
  }
  const int64_t positions = own / call.tp;
  offsets.first_position = call.tp_rank * positions;
  offsets.first_sample = call.lane_samples().first;
  offsets.samples = ids.size(0) / positions;
  offsets.layer = static_cast<uint64_t>(call.layer + 1) * 0x165667b19e3779f9;
  LaunchRoutingFingerprint(Elements<int64_t>(ids), ids.size(0), ids.size(1), offsets, Elements<int64_t>(sum),
                           CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {sum};
}

}  // namespace planwright::executor::ops
