// Norms of heads and the rotary embedding by kernels (executor/kernels/head_rows.h). executor/ops/head_norm.cc and
// rope.cc have the plain forms, which define them.
#include "executor/kernels/head_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <numbers>

#include "executor/ops/axial_rope.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/joined_form.h"
#include "executor/ops/fast/placed_images.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"
#include "executor/ops/rope_speeds.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

HeadShape ShapeOf(const Instruction& instruction, const at::Tensor& x) {
  const HeadShape shape = {.rows = x.numel() / x.size(-1),
                           .q_heads = instruction.integer("q_heads"),
                           .k_heads = instruction.integer("k_heads"),
                           .v_heads = instruction.integer("v_heads"),
                           .head_dim = instruction.integer("head_dim")};
  TORCH_CHECK(x.size(-1) == shape.heads() * shape.head_dim, "features of ", x.sizes(), " for ", shape.heads(),
              " heads of ", shape.head_dim);
  return shape;
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

// How the planes of a `rope` or `rope_grad` turn, and by which positions. `way`: 1 forward, -1 back.
struct RowTurns {
  RopeTurns planes;
  at::Tensor positions;

  RowTurns(const ComputeContext& context, const HeadShape& shape, int way) : positions(context.inputs[1].contiguous()) {
    const RopeSpeeds speeds(context.instruction);
    TORCH_CHECK(positions.numel() == (speeds.several ? 3 : 1) * shape.rows, "positions of ", positions.sizes(), " for ",
                shape.rows, " rows");
    planes.rotary = context.instruction.integer("rotary"), planes.amplitude = static_cast<float>(speeds.amplitude);
    for (size_t j = 0; j < speeds.of.size(); ++j) {
      planes.of_plane[j] = way * speeds.of[j] / (2 * std::numbers::pi);
      planes.axis_of_plane[j] = static_cast<uint8_t>(speeds.axis[j]);
    }
  }
};

Tensors Turned(const ComputeContext& context, int way) {
  const at::Tensor& x = context.inputs[0];
  const HeadShape shape = ShapeOf(context.instruction, x);
  const RowTurns turns(context, shape, way);
  const at::Tensor y = context.OutputOver(0);
  LaunchRope(Elements<Bf16>(x), Elements<int64_t>(turns.positions), turns.planes, Elements<Bf16>(y), shape,
             CurrentStream());
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
  const at::Tensor y = context.OutputOver(0);
  LaunchRope(Elements<Bf16>(x), Elements<int64_t>(places), turns, Elements<Bf16>(y), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y};
}

// A norm and a rope of one list have the same heads; a plan that someone has written need not.
bool OfTheSameHeads(const Instruction& one, const Instruction& other) {
  const std::array<const char*, 4> names = {"q_heads", "k_heads", "v_heads", "head_dim"};
  return std::all_of(names.begin(), names.end(),
                     [&](const char* name) { return one.integer(name) == other.integer(name); });
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

bool TakesHeadNormWithRope(const ComputeBinding& of_norm, const ComputeBinding& of_rope) {
  return TakesHeadNorm(of_norm) && TakesRope(of_rope) && OfTheSameHeads(of_norm.instruction, of_rope.instruction);
}
bool TakesRopeGradWithHeadNormGrad(const ComputeBinding& of_rope, const ComputeBinding& of_norm) {
  return TakesRopeGrad(of_rope) && TakesHeadNormGrad(of_norm) &&
         OfTheSameHeads(of_rope.instruction, of_norm.instruction);
}

Tensors FastHeadNormWithRope(const ComputeContext& of_norm, const ComputeContext& of_rope) {
  const at::Tensor& x = of_norm.inputs[0];
  if (!LiesForRope(of_norm) || PlaceOfFirst(of_rope) != 0) return OneByOne(FastHeadNorm, of_norm, FastRope, of_rope);
  const HeadShape shape = ShapeOf(of_norm.instruction, x);
  const RowTurns turns(of_rope, shape, 1);
  const at::Tensor y = at::empty_like(x),
                   scale = at::empty(WithWidth(x, shape.turning()), x.options().dtype(at::kFloat));
  LaunchHeadNormRope(Elements<Bf16>(x), WeightsOf(of_norm, shape), static_cast<float>(of_norm.instruction.real("eps")),
                     Elements<int64_t>(turns.positions), turns.planes, Elements<Bf16>(y), Elements<float>(scale), shape,
                     CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {scale, y};
}

Tensors FastRopeGradWithHeadNormGrad(const ComputeContext& of_rope, const ComputeContext& of_norm) {
  const bool in_order = PlaceOfFirst(of_norm) == 0;
  if (!in_order || !LiesForRope(of_rope) || !LiesInVectors(of_norm.inputs[1]) || !of_norm.inputs[2].is_contiguous())
    return OneByOne(FastRopeGrad, of_rope, FastHeadNormGrad, of_norm);
  const at::Tensor &dy = of_rope.inputs[0], &x = of_norm.inputs[1], &scale = of_norm.inputs[2];
  TORCH_CHECK(dy.sizes() == x.sizes(), "gradients of ", dy.sizes(), " for features of ", x.sizes());
  const HeadShape shape = ShapeOf(of_norm.instruction, x);
  const RowTurns turns(of_rope, shape, -1);
  const at::Tensor dx = of_rope.OutputOver(0);
  const at::Tensor partials = PartialSums(of_norm, RopeHeadNormPartials(shape),
                                          static_cast<int64_t>(of_norm.parameters.size()) * shape.head_dim);
  LaunchRopeHeadNormGradient(Elements<Bf16>(dy), Elements<int64_t>(turns.positions), turns.planes, Elements<Bf16>(x),
                             Elements<float>(scale), WeightsOf(of_norm, shape), Elements<Bf16>(dx),
                             ElementsOrNull(partials), shape, CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  AddColumnSums(of_norm, partials);
  return {dx};
}

}  // namespace planwright::executor::ops
