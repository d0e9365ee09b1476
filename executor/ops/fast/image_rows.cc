// Positions from a table that is resized to each image, by kernels (executor/kernels/image_rows.h). The plain forms,
// which define them, are in executor/ops/position_table.cc.
#include "executor/kernels/image_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <vector>

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/placed_images.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

// Products of a place and a side are 32-bit numbers in the kernels.
constexpr int64_t kMostPlaces = int64_t{1} << 15;

bool TakesTable(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && InWholeVectors(*binding.inputs[0]) &&
         binding.instruction.integer("side") < kMostPlaces;
}

// What is known of the images at run time only.
bool FitsKernels(const ComputeContext& context) {
  const at::Tensor& grids = context.inputs[1];
  return LieInVectors(context, 1) && context.inputs[0].numel() > 0 && grids.max().item<int64_t>() < kMostPlaces;
}

ImagesOnDevice ImagesFor(const ComputeContext& context) {
  const at::Tensor& rows = context.inputs[0];
  ImagesOnDevice images(context, rows.device());
  TORCH_CHECK(rows.size(0) == images.placed().patches, "there are ", rows.size(0), " rows, but image_grid says ",
              images.placed().patches, " patches");
  return images;
}

PositionTable TableOf(const ComputeContext& context, const at::Tensor& table) {
  const PositionTable of = {.side = context.instruction.integer("side"), .width = context.inputs[0].size(1)};
  TORCH_CHECK(table.dim() == 2 && table.size(0) == of.side * of.side && table.size(1) == of.width, "a table of ",
              table.sizes(), " for a side of ", of.side, " and rows of ", of.width);
  return of;
}

}  // namespace

ImagesOnDevice::ImagesOnDevice(const ComputeContext& context, at::Device device) {
  const at::Tensor& grids = context.inputs[1];
  const std::vector<ImageSpan> images = ImageSpans(grids, 0, LanePart::Of(context));
  patches_ = PatchCount(images);
  std::vector<int64_t> numbers;
  for (const ImageSpan& image : images) {
    numbers.insert(numbers.end(), {image.first_patch, image.rows, image.columns, image.first_row,
                                   grids.accessor<int64_t, 2>()[image.image][0]});
  }
  numbers_ = Indices(numbers, device);
}

PlacedImages ImagesOnDevice::placed() const {
  return {.of = reinterpret_cast<const PlacedImage*>(Elements<int64_t>(numbers_)),
          .count = numbers_.numel() / kPlacedImageNumbers,
          .patches = patches_};
}

at::Tensor ImagesOnDevice::Places() const {
  at::Tensor places = at::empty({2, patches_}, numbers_.options());
  LaunchPatchPlaces(placed(), Elements<int64_t>(places), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return places;
}

bool TakesAddPositions(const ComputeBinding& binding) {
  return TakesTable(binding) && InBf16Elements(binding.parameters[0]);
}

bool TakesAddPositionsGrad(const ComputeBinding& binding) {
  return TakesTable(binding) && binding.gradients[0].scalar_type() == at::kFloat;
}

Tensors FastAddPositions(const ComputeContext& context) {
  const at::Tensor &e = context.inputs[0], &table = context.parameters[0];
  if (!FitsKernels(context) || !LiesInVectors(table)) return RunAddPositions(context);
  const at::Tensor x = at::empty_like(e);
  LaunchAddPositions(ImagesFor(context).placed(), TableOf(context, table), Elements<Bf16>(e), Elements<Bf16>(table),
                     Elements<Bf16>(x), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {x};
}

Tensors FastAddPositionsGrad(const ComputeContext& context) {
  const at::Tensor& gradient = context.gradients[0];
  if (!FitsKernels(context) || !LiesInVectors(gradient)) return RunAddPositionsGrad(context);
  LaunchAddPositionsGradient(ImagesFor(context).placed(), TableOf(context, gradient), Elements<Bf16>(context.inputs[0]),
                             Elements<float>(gradient), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {};
}

}  // namespace planwright::executor::ops
