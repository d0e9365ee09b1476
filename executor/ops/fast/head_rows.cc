// Norms of heads and the rotary embedding by kernels (executor/kernels/head_rows.h). executor/ops/head_norm.cc and
// rope.cc have the plain forms, which define them.
#include "executor/kernels/head_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <numbers>

#include "executor/ops/axial_rope.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/placed_images.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"
#include "executor/ops/rope_speeds.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

HeadShape ShapeOf(const Instruction& instruction, const at::Tensor& x) {
  return {.rows = x.numel() / x.size(-1),
          .q_heads = instruction.integer("q_heads"),
          .k_heads = instruction.integer("k_heads"),
          .v_heads = instruction.integer("v_heads"),
          .head_dim = instruction.integer("head_dim")};
}

bool TakesHeads(const Instruction& instruction) {
  const int64_t head_dim = instruction.integer("head_dim");
  return head_dim % 8 == 0 && head_dim <= kWidestHead;
}

bool TakesNorm(const ComputeBinding& binding) {
  return TakesHeads(binding.instruction) && !binding.parameters.empty() &&
         std::all_of(binding.parameters.begin(), binding.parameters.end(), InBf16Elements);
}

// Queries come first, where there are any.
HeadWeights WeightsOf(const ComputeContext& context, const HeadShape& shape) {
  const Tensors& parameters = context.parameters;
  TORCH_CHECK(parameters.size() == static_cast<size_t>((shape.q_heads > 0) + (shape.k_heads > 0)),
              "weights of heads: ", parameters.size());
  return {.q = shape.q_heads > 0 ? Elements<Bf16>(parameters.front()) : nullptr,
          .k = shape.k_heads > 0 ? Elements<Bf16>(parameters.back()) : nullptr};
}

bool TakesRotary(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesHeads(binding.instruction) &&
         binding.instruction.integer("rotary") % 16 == 0;
}

bool LiesForRope(const ComputeContext& context) { return LieInVectors(context, 1) && context.inputs[0].numel() > 0; }

// `way`: 1 forward, -1 back.
Tensors Turned(const ComputeContext& context, int way) {
  const at::Tensor &x = context.inputs[0], positions = context.inputs[1].contiguous();
  const HeadShape shape = ShapeOf(context.instruction, x);
  const RopeSpeeds speeds(context.instruction);
  TORCH_CHECK(
      x.size(-1) == shape.heads() * shape.head_dim && positions.numel() == (speeds.several ? 3 : 1) * shape.rows,
      "features of ", x.sizes(), " and positions of ", positions.sizes(), " for ", shape.heads(), " heads of ",
      shape.head_dim);
  RopeTurns turns{.rotary = context.instruction.integer("rotary"), .amplitude = static_cast<float>(speeds.amplitude)};
  for (size_t j = 0; j < speeds.of.size(); ++j) {
    turns.of_plane[j] = way * speeds.of[j] / (2 * std::numbers::pi);
    turns.axis_of_plane[j] = static_cast<uint8_t>(speeds.axis[j]);
  }
  const at::Tensor y = at::empty_like(x);
  LaunchRope(Elements<Bf16>(x), Elements<int64_t>(positions), turns, Elements<Bf16>(y), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y};
}

// The planes of rows, then those of columns, by the kernel of rope. `way`: as above.
Tensors TurnedByPlace(const ComputeContext& context, int way) {
  const at::Tensor &x = context.inputs[0], places = ImagesOnDevice(context, x.device()).Places();
  const int64_t heads = context.instruction.integer("heads"), head_dim = context.instruction.integer("head_dim");
  const HeadShape shape = {
      .rows = x.size(0), .q_heads = heads, .k_heads = heads, .v_heads = heads, .head_dim = head_dim};
  TORCH_CHECK(x.size(-1) == shape.heads() * head_dim && places.numel() == 2 * shape.rows, "features of ", x.sizes(),
              " and ", places.numel() / 2, " patches for ", shape.heads(), " heads of ", head_dim);
  const std::vector<double> speeds = AxialSpeeds(context.instruction);
  RopeTurns turns{.rotary = head_dim};
  for (size_t j = 0; j < 2 * speeds.size(); ++j) {
    turns.of_plane[j] = way * speeds[j % speeds.size()] / (2 * std::numbers::pi);
    turns.axis_of_plane[j] = j < speeds.size() ? 0 : 1;
  }
  const at::Tensor y = at::empty_like(x);
  LaunchRope(Elements<Bf16>(x), Elements<int64_t>(places), turns, Elements<Bf16>(y), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y};
}

bool TakesPlaces(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && TakesHeads(binding.instruction) &&
         binding.instruction.integer("head_dim") % 16 == 0;
}

}  // namespace

bool TakesHeadNorm(const ComputeBinding& binding) { return PlannedInBf16(binding, 1) && TakesNorm(binding); }
bool TakesHeadNormGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && binding.inputs[2]->dtype == DType::kFp32 && TakesNorm(binding);
}
bool TakesRope(const ComputeBinding& binding) { return TakesRotary(binding); }
bool TakesRopeGrad(const ComputeBinding& binding) { return TakesRotary(binding); }

Tensors FastHeadNorm(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  if (!LieInVectors(context, 1) || x.numel() == 0) return RunHeadNorm(context);
  const HeadShape shape = ShapeOf(context.instruction, x);
  TORCH_CHECK(x.size(-1) == shape.heads() * shape.head_dim, "features of ", x.sizes(), " for ", shape.heads(),
              " heads of ", shape.head_dim);
  const at::Tensor y = at::empty_like(x),
                   scale = at::empty(WithWidth(x, shape.turning()), x.options().dtype(at::kFloat));
  LaunchHeadNorm(Elements<Bf16>(x), WeightsOf(context, shape), static_cast<float>(context.instruction.real("eps")),
                 Elements<Bf16>(y), Elements<float>(scale), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y, scale};
}

Tensors FastHeadNormGrad(const ComputeContext& context) {
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1], &scale = context.inputs[2];
  if (!LieInVectors(context, 2) || !scale.is_contiguous() || x.numel() == 0) return RunHeadNormGrad(context);
  const HeadShape shape = ShapeOf(context.instruction, x);
  const at::Tensor dx = at::empty_like(x);
  const at::Tensor partials =
      PartialSums(context, HeadNormPartials(shape), static_cast<int64_t>(context.parameters.size()) * shape.head_dim);
  LaunchHeadNormGradient(Elements<Bf16>(dy), Elements<Bf16>(x), Elements<float>(scale), WeightsOf(context, shape),
                         Elements<Bf16>(dx), ElementsOrNull(partials), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(context, partials);
  return {dx};
}

bool TakesAxialRope(const ComputeBinding& binding) { return TakesPlaces(binding); }
bool TakesAxialRopeGrad(const ComputeBinding& binding) { return TakesPlaces(binding); }

Tensors FastAxialRope(const ComputeContext& context) {
  return LiesForRope(context) ? TurnedByPlace(context, 1) : RunAxialRope(context);
}
Tensors FastAxialRopeGrad(const ComputeContext& context) {
  return LiesForRope(context) ? TurnedByPlace(context, -1) : RunAxialRopeGrad(context);
}

Tensors FastRope(const ComputeContext& context) { return LiesForRope(context) ? Turned(context, 1) : RunRope(context); }
Tensors FastRopeGrad(const ComputeContext& context) {
  return LiesForRope(context) ? Turned(context, -1) : RunRopeGrad(context);
}

}  // namespace planwright::executor::ops
