// Rotary position embedding by the place of a patch in its image (docs/model/qwen_vit.md#axial-rotary-embedding). The
// features of x are those of `heads` query heads, then of as many key heads, then of as many value heads, which pass.
//
//   axial_rope        x [P,3 heads d], image_grid i64 [n,2] host -> y
//   axial_rope_grad   dy, image_grid -> dx, the rotation back
//
// Angles are fp64 on every device. Their cosines and sines have the wide type, and so has the arithmetic. y has the
// dtype of x, and where x dies there its memory. P is of this rank's part with cp.
#include "executor/ops/axial_rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "executor/base/tensors.h"
#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/turn_planes.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {
namespace {

// Angles [P, head_dim/2]: half of them of rows, half of columns.
at::Tensor AnglesOf(const ComputeContext& context, at::Device device) {
  const at::Tensor places = Indices(PatchPlaces(context), device).view({2, -1}),
                   speed = ToDevice(at::tensor(AxialSpeeds(context.instruction), at::kDouble), device);
  return at::cat({places[0].unsqueeze(1) * speed, places[1].unsqueeze(1) * speed}, 1);
}

// `way`: 1 forward, -1 back.
at::Tensor Turned(const ComputeContext& context, int way) {
  const at::Tensor& x = context.inputs[0];
  const int64_t heads = context.instruction.integer("heads"), head_dim = context.instruction.integer("head_dim"),
                half = head_dim / 2;
  TORCH_CHECK(x.dim() == 2 && x.size(1) == 3 * heads * head_dim && head_dim % 4 == 0, "features of ", x.sizes(),
              " for queries, keys and values of ", heads, " heads of ", head_dim);
  const at::Tensor angle = AnglesOf(context, x.device());
  TORCH_CHECK(angle.size(0) == x.size(0), "there are ", x.size(0), " rows, but image_grid says ", angle.size(0),
              " patches");
  const at::Tensor cosine = angle.cos().to(WideType(x)).unsqueeze(1),
                   sine = (angle.sin() * way).to(WideType(x)).unsqueeze(1);
  const at::Tensor y = context.OutputOver(0);
  if (!context.overwrites) y.copy_(x);
  const at::Tensor turn = y.view({x.size(0), 3 * heads, head_dim}).narrow(1, 0, 2 * heads);
  TurnPlanes(turn.narrow(2, 0, half), turn.narrow(2, half, half), cosine, sine);
  return y;
}

}  // namespace

std::vector<int64_t> PatchPlaces(const ComputeContext& context) {
  std::vector<int64_t> places, columns;
  for (const ImageSpan& image : ImageSpans(context.inputs[1], 0, LanePart::Of(context))) {
    for (int64_t row = 0; row < image.rows; ++row) {
      for (int64_t column = 0; column < image.columns; ++column) {
        places.push_back(image.first_row + row);
        columns.push_back(column);
      }
    }
  }
  places.insert(places.end(), columns.begin(), columns.end());
  return places;
}

std::vector<double> AxialSpeeds(const Instruction& instruction) {
  const int64_t head_dim = instruction.integer("head_dim");
  const double theta = instruction.real("theta");
  std::vector<double> speeds;
  for (int64_t j = 0; j < head_dim / 4; ++j)
    speeds.push_back(std::pow(theta, -4.0 * static_cast<double>(j) / static_cast<double>(head_dim)));
  return speeds;
}

Tensors RunAxialRope(const ComputeContext& context) { return {Turned(context, 1)}; }
Tensors RunAxialRopeGrad(const ComputeContext& context) { return {Turned(context, -1)}; }

}  // namespace planwright::executor::ops
