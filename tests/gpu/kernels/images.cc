// What encoders of Qwen3-VL's sizes have of their own: four images at a time, and their rows among tokens.
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kSide = 48, kWidth = 1024, kHeads = 16, kPatches = 4096 + 3072 + 3072 + 2048;
constexpr int64_t kPatch = 16, kFold = 2;
constexpr int64_t kSamples = 2, kSequence = 4096, kHidden = 2048, kImageRows = kPatches / 4, kImageToken = 1;

at::TensorOptions Gpu(at::ScalarType type) { return at::TensorOptions(at::kCUDA).dtype(type); }
at::Tensor Values(at::IntArrayRef shape) { return at::randn(shape, Gpu(at::kBFloat16)); }

KernelCase Case(const std::string& name, int64_t values, const KernelCall& call) {
  return CaseOf(name, 2.0 * static_cast<double>(values), 0, call);
}

}  // namespace

std::vector<KernelCase> ImageCases() {
  const at::Tensor grid = at::tensor({64, 64, 48, 64, 48, 64, 32, 64}, at::kLong).view({4, 2});
  const at::Tensor x = Values({kPatches, kWidth}), qkv = Values({kPatches, 3 * kWidth});
  const at::Tensor e = Values({kSequence, kSamples, kHidden}), rows = Values({kImageRows, kHidden});
  at::Tensor tokens = at::zeros({kSamples, kSequence}, Gpu(at::kLong));
  tokens.narrow(1, 0, kImageRows / kSamples).fill_(kImageToken);
  const at::Tensor patches = Values({kPatches, 3 * kPatch * kPatch}), joined = Values({kPatches, 2 * kWidth});
  const Attributes fold = {{"factor", kFold}}, frames = {{"frames", int64_t{2}}}, halves = {{"first", kWidth}};
  const Attributes table = {{"side", kSide}}, image = {{"image_token", kImageToken}},
                   rope = {{"heads", kHeads}, {"head_dim", kWidth / kHeads}, {"theta", 10000.0}};
  const int64_t positions = kSide * kSide * kWidth;
  return {
      Case("add_positions", 2 * x.numel() + positions,
           {ops::RunAddPositions, table, {x, grid}, {Values({kSide * kSide, kWidth})}}),
      Case("add_positions_grad", x.numel() + 4 * positions,
           {ops::RunAddPositionsGrad, table, {x, grid}, {}, {at::zeros({kSide * kSide, kWidth}, Gpu(at::kFloat))}}),
      Case("axial_rope", 2 * qkv.numel(), {ops::RunAxialRope, rope, {qkv, grid}}),
      {.name = "axial_rope in place",
       .bytes = 8.0 / 3 * static_cast<double>(qkv.numel()),
       .run =
           [=] {
             Op(rope).Overwriting().Run(ops::RunAxialRope, {qkv, grid});
           }},
      Case("merge_images", 2 * e.numel(), {ops::RunMergeImages, image, {e, rows, tokens}}),
      Case("add_images", 2 * e.numel() + rows.numel(), {ops::RunAddImages, image, {e, rows, tokens}}),
      Case("repeat_frames", 3 * patches.numel(), {ops::RunRepeatFrames, frames, {patches}}),
      Case("split_features", 2 * joined.numel(), {ops::RunSplitFeatures, halves, {joined}}),
      Case("pixel_shuffle", 2 * x.numel(), {ops::RunPixelShuffle, fold, {x, grid}}),
      Case("pixel_shuffle_grad", 2 * x.numel(),
           {ops::RunPixelShuffleGrad, fold, {x.view({kPatches / (kFold * kFold), -1}), grid}}),
      Case("square_sum", rows.numel(), {ops::RunSquareSum, {}, {rows}}),
  };
}

}  // namespace planwright::executor
