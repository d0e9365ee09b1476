// The vision encoder's handlers, compared with plain formulas, with LibTorch's own interpolation, and with LibTorch's
// autograd of the plain formulas.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/grid_sampler.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "executor/ops/handler.h"
#include "planner/base/random/philox.h"

namespace planwright::executor {
namespace {

using Grids = std::vector<std::pair<int64_t, int64_t>>;
using Handler = Tensors (*)(const ComputeContext&);

constexpr int64_t kSeed = 77, kSide = 8, kHidden = 6, kClasses = 2;

Tensors RunOp(Handler handler, const Attributes& attributes, const Tensors& inputs, const Tensors& parameters = {},
              const Tensors& gradients = {}) {
  Plan plan;
  plan.data.seed = kSeed;
  CallContext call;
  call.plan = &plan;
  Instruction instruction;
  instruction.attributes = attributes;
  return handler({instruction, call, inputs, parameters, gradients});
}

at::Tensor Normals(at::IntArrayRef shape) { return at::randn(shape, at::kDouble); }

at::Tensor Pairs(const Grids& pairs) {
  at::Tensor out = at::empty({static_cast<int64_t>(pairs.size()), 2}, at::kLong);
  for (size_t i = 0; i < pairs.size(); ++i) {
    out.accessor<int64_t, 2>()[i][0] = pairs[i].first;
    out.accessor<int64_t, 2>()[i][1] = pairs[i].second;
  }
  return out;
}

int64_t Patches(const Grids& grids) {
  int64_t sum = 0;
  for (const auto& [rows, columns] : grids) sum += rows * columns;
  return sum;
}

int64_t Tokens(const Grids& grids) { return Patches(grids) + static_cast<int64_t>(grids.size()) * kClasses; }

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, double tolerance = 1e-9) {
  ASSERT_EQ(actual.sizes(), expected.sizes());
  ASSERT_EQ(actual.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(at::allclose(actual, expected, tolerance, tolerance))
      << "largest difference " << (actual - expected).abs().max().item<double>();
}

const Grids kGrids = {{2, 4}, {4, 2}, {6, 6}, {2, 2}};

// --- attention

const Attributes kAttention = {{"heads", int64_t{2}}, {"head_dim", int64_t{3}}, {"class_tokens", kClasses}};
constexpr int64_t kHeads = 2, kHeadDim = 3, kWidth = kHeads * kHeadDim;

at::Tensor PlainScores(const at::Tensor& rows, int64_t head) {
  const at::Tensor q = rows.narrow(1, head * kHeadDim, kHeadDim),
                   k = rows.narrow(1, kWidth + head * kHeadDim, kHeadDim);
  return q.mm(k.t()) / std::sqrt(3.0);
}

at::Tensor PlainAttention(const at::Tensor& qkv, const Grids& grids) {
  Tensors images;
  int64_t first = 0;
  for (const auto& [rows, columns] : grids) {
    const int64_t length = rows * columns + kClasses;
    const at::Tensor image = qkv.narrow(0, first, length);
    Tensors heads;
    for (int64_t head = 0; head < kHeads; ++head) {
      const at::Tensor v = image.narrow(1, 2 * kWidth + head * kHeadDim, kHeadDim);
      heads.push_back(at::softmax(PlainScores(image, head), -1).mm(v));
    }
    images.push_back(at::cat(heads, 1));
    first += length;
  }
  return at::cat(images, 0);
}

TEST(PackedAttention, MatchesSoftmaxOfEachImage) {
  const at::Tensor qkv = Normals({Tokens(kGrids), 3 * kWidth});
  const Tensors out = RunOp(ops::RunPackedAttention, kAttention, {qkv, Pairs(kGrids)});
  ExpectClose(out[0], PlainAttention(qkv, kGrids), 1e-12);
  ASSERT_EQ(out[1].sizes(), (at::IntArrayRef{kHeads, Tokens(kGrids)}));
  const int64_t second = 8 + kClasses;  // first row of the second image, which has as many rows
  ExpectClose(out[1].select(0, 1).narrow(0, second, second),
              PlainScores(qkv.narrow(0, second, second), 1).exp().sum(1).log(), 1e-12);
}

TEST(PackedAttention, GradientMatchesAutograd) {
  const at::Tensor qkv = Normals({Tokens(kGrids), 3 * kWidth}).requires_grad_(true),
                   da = Normals({Tokens(kGrids), kWidth});
  PlainAttention(qkv, kGrids).backward(da);
  const Tensors out = RunOp(ops::RunPackedAttention, kAttention, {qkv.detach(), Pairs(kGrids)});
  const Tensors grad =
      RunOp(ops::RunPackedAttentionGrad, kAttention, {da, qkv.detach(), out[0], out[1], Pairs(kGrids)});
  ExpectClose(grad[0], qkv.grad());
}

TEST(PackedAttention, Bf16ComputesInFp32AndRoundsOnce) {
  const at::Tensor qkv = Normals({Tokens(kGrids), 3 * kWidth}).to(at::kBFloat16);
  const Tensors out = RunOp(ops::RunPackedAttention, kAttention, {qkv, Pairs(kGrids)});
  const at::Tensor exact = PlainAttention(qkv.to(at::kDouble), kGrids);
  ASSERT_EQ(out[0].scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::allclose(out[0].to(at::kDouble), exact, 0x1p-8, 1e-5));  // half a unit in the last place of bf16
  EXPECT_EQ(out[1].scalar_type(), at::kFloat);
}

// --- positions

Attributes Positions(bool crop) { return {{"side", kSide}, {"crop", int64_t{crop}}}; }

const Grids kIds = {{5, 0}, {5, 1}, {9, 0}, {1234567, 3}};

at::Tensor TableImage(const at::Tensor& table) { return table.view({1, kSide, kSide, kHidden}).permute({0, 3, 1, 2}); }
at::Tensor RowsOf(const at::Tensor& image) { return image.permute({0, 2, 3, 1}).reshape({-1, kHidden}); }

// The resized position table by LibTorch's interpolation, differentiable in the table
// (docs/model/vision_encoder.md#position-embedding).
at::Tensor ResizedPositions(const at::Tensor& table, int64_t rows, int64_t columns) {
  const int64_t m = std::max(rows, columns);
  const at::Tensor resized = at::upsample_bilinear2d(TableImage(table), at::IntArrayRef{m, m}, /*align_corners=*/false);
  return RowsOf(resized.narrow(2, 0, rows).narrow(3, 0, columns));
}

// The randomly cropped position table by LibTorch's grid sampler, with the draws in their order.
at::Tensor CroppedPositions(const at::Tensor& table, int64_t rows, int64_t columns,
                            const std::pair<int64_t, int64_t>& id) {
  const Philox stream(kSeed, "position_crop");
  const int64_t first = (id.first * 4096 + id.second) * 4;
  const double scale = std::sqrt(0.1) + (1 - std::sqrt(0.1)) * stream.Uniform(first);
  const double aspect = 0.75 * std::pow(16.0 / 9, stream.Uniform(first + 1));
  const double sx = std::min(1.0, scale * aspect), sy = std::min(1.0, scale / aspect);
  const double ox = stream.Uniform(first + 2) * (1 - sx), oy = stream.Uniform(first + 3) * (1 - sy);
  const at::Tensor x = (at::linspace(0, 1, columns, at::kDouble) * sx + ox) * 2 - 1,
                   y = (at::linspace(0, 1, rows, at::kDouble) * sy + oy) * 2 - 1;
  const at::Tensor grid =
      at::stack({x.view({1, columns}).expand({rows, columns}), y.view({rows, 1}).expand({rows, columns})}, -1);
  return RowsOf(
      at::grid_sampler(TableImage(table), grid.unsqueeze(0), /*bilinear=*/0, /*zeros=*/0, /*align_corners=*/true));
}

at::Tensor PlainPositions(const at::Tensor& e, const at::Tensor& table, const at::Tensor& classes, const Grids& grids,
                          bool crop) {
  Tensors parts;
  int64_t first = 0;
  for (size_t i = 0; i < grids.size(); ++i) {
    const auto [rows, columns] = grids[i];
    const bool whole = rows == kSide && columns == kSide;
    const at::Tensor positions = whole  ? table[0]
                                 : crop ? CroppedPositions(table, rows, columns, kIds[i])
                                        : ResizedPositions(table, rows, columns);
    parts.push_back(classes);
    parts.push_back(e.narrow(0, first, rows * columns) + positions);
    first += rows * columns;
  }
  return at::cat(parts, 0);
}

class PositionAndClass : public testing::TestWithParam<bool> {
 protected:
  // Smaller, larger than and as large as the table; one row; one column.
  const Grids grids = {{2, 4}, {12, 1}, {kSide, kSide}, {1, 6}};
  const at::Tensor e = Normals({Patches(grids), kHidden}), dx = Normals({Tokens(grids), kHidden});
  const at::Tensor table = Normals({1, kSide*kSide, kHidden}), classes = Normals({kClasses, kHidden});
};

TEST_P(PositionAndClass, MatchesLibTorch) {
  const Tensors out =
      RunOp(ops::RunPositionAndClass, Positions(GetParam()), {e, Pairs(grids), Pairs(kIds)}, {table, classes});
  ExpectClose(out[0], PlainPositions(e, table, classes, grids, GetParam()), 1e-12);
}

// A lane with one patch: its tables of indices are contiguous as they are, and must be copied all the same.
TEST_P(PositionAndClass, OfOnePatch) {
  const Grids one = {{1, 1}};
  const at::Tensor patch = Normals({1, kHidden});
  const Tensors out =
      RunOp(ops::RunPositionAndClass, Positions(GetParam()), {patch, Pairs(one), Pairs({kIds[0]})}, {table, classes});
  ExpectClose(out[0], PlainPositions(patch, table, classes, one, GetParam()), 1e-12);
}

TEST_P(PositionAndClass, WholeTableIsReadExactly) {
  const Grids whole = {{kSide, kSide}};
  const at::Tensor zero = at::zeros({kSide * kSide, kHidden}, at::kDouble);
  const Tensors out =
      RunOp(ops::RunPositionAndClass, Positions(GetParam()), {zero, Pairs(whole), Pairs({{0, 0}})}, {table, classes});
  EXPECT_TRUE(at::equal(out[0].narrow(0, kClasses, kSide * kSide), table[0]));
}

TEST_P(PositionAndClass, GradientMatchesAutogradAndAdds) {
  const at::Tensor e_leaf = e.clone().requires_grad_(true), table_leaf = table.clone().requires_grad_(true);
  const at::Tensor classes_leaf = classes.clone().requires_grad_(true);
  PlainPositions(e_leaf, table_leaf, classes_leaf, grids, GetParam()).backward(dx);
  const at::Tensor before_table = Normals(table.sizes()), before_classes = Normals(classes.sizes());
  const at::Tensor d_table = before_table.clone(), d_classes = before_classes.clone();
  const Tensors out = RunOp(ops::RunPositionAndClassGrad, Positions(GetParam()), {dx, Pairs(grids), Pairs(kIds)}, {},
                            {d_table, d_classes});
  ExpectClose(out[0], e_leaf.grad(), 1e-12);
  ExpectClose(d_table, before_table + table_leaf.grad(), 1e-9);
  ExpectClose(d_classes, before_classes + classes_leaf.grad(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Modes, PositionAndClass, testing::Bool(),
                         [](const auto& info) { return info.param ? "Crop" : "Resize"; });

// The crop of an image does not depend on the images that are packed with it.
TEST(PositionCrop, DoesNotDependOnTheBatch) {
  const at::Tensor table = Normals({1, kSide * kSide, kHidden}), classes = Normals({kClasses, kHidden});
  const at::Tensor e = Normals({24, kHidden});
  const Tensors both = RunOp(ops::RunPositionAndClass, Positions(true),
                             {e, Pairs({{2, 4}, {4, 4}}), Pairs({{3, 0}, {3, 1}})}, {table, classes});
  const Tensors alone = RunOp(ops::RunPositionAndClass, Positions(true),
                              {e.narrow(0, 8, 16), Pairs({{4, 4}}), Pairs({{3, 1}})}, {table, classes});
  const Tensors other = RunOp(ops::RunPositionAndClass, Positions(true),
                              {e.narrow(0, 8, 16), Pairs({{4, 4}}), Pairs({{3, 2}})}, {table, classes});
  EXPECT_TRUE(at::equal(both[0].narrow(0, 8 + kClasses, 16 + kClasses), alone[0]));
  EXPECT_FALSE(at::allclose(alone[0], other[0]));
}

// --- class tokens and pixel shuffle

const Attributes kDrop = {{"class_tokens", kClasses}};
const Attributes kShuffle = {{"factor", int64_t{2}}};

TEST(DropClassTokens, KeepsPatchesAndItsGradientIsZeroAtClassTokens) {
  const Grids grids = {{1, 3}, {2, 1}};
  const at::Tensor x = at::arange(9, at::kDouble).view({9, 1}).repeat({1, 2});
  const Tensors out = RunOp(ops::RunDropClassTokens, kDrop, {x, Pairs(grids)});
  EXPECT_TRUE(at::equal(out[0].select(1, 0), at::tensor({2., 3., 4., 7., 8.}, at::kDouble)));
  const Tensors grad = RunOp(ops::RunDropClassTokensGrad, kDrop, {out[0] + 1, Pairs(grids)});
  EXPECT_TRUE(at::equal(grad[0].select(1, 1), at::tensor({0., 0., 3., 4., 5., 0., 0., 8., 9.}, at::kDouble)));
}

TEST(PixelShuffle, GathersEachBlockOfPatches) {
  const Grids grids = {{2, 2}, {4, 6}};
  const at::Tensor x = Normals({28, 3});
  const Tensors out = RunOp(ops::RunPixelShuffle, kShuffle, {x, Pairs(grids)});
  ASSERT_EQ(out[0].sizes(), (at::IntArrayRef{7, 12}));
  EXPECT_TRUE(at::equal(out[0][0], x.narrow(0, 0, 4).reshape({12})));
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t c = 0; c < 12; ++c) {
        const int64_t dh = c / 6, dw = c / 3 % 2, patch = 4 + (2 * i + dh) * 6 + 2 * j + dw;
        EXPECT_EQ(out[0][1 + i * 3 + j][c].item<double>(), x[patch][c % 3].item<double>());
      }
    }
  }
  // a permutation: its transpose undoes it
  EXPECT_TRUE(at::equal(RunOp(ops::RunPixelShuffleGrad, kShuffle, {out[0], Pairs(grids)})[0], x));
}

TEST(PixelShuffle, RefusesAGridThatDoesNotDivide) {
  EXPECT_ANY_THROW(RunOp(ops::RunPixelShuffle, kShuffle, {Normals({6, 3}), Pairs({{2, 3}})}));
}

// --- a lane without images

TEST(NoImages, EveryHandlerGivesZeroRowsAndLeavesGradients) {
  const at::Tensor none = Pairs({}), rows = Normals({0, kHidden}), qkv = Normals({0, 3 * kWidth}),
                   a = Normals({0, kWidth});
  const at::Tensor table = Normals({1, kSide * kSide, kHidden}), classes = Normals({kClasses, kHidden});
  const at::Tensor d_table = table.clone(), d_classes = classes.clone();
  const at::IntArrayRef hidden = rows.sizes();
  for (const bool crop : {false, true}) {
    EXPECT_EQ(RunOp(ops::RunPositionAndClass, Positions(crop), {rows, none, none}, {table, classes})[0].sizes(),
              hidden);
    EXPECT_EQ(
        RunOp(ops::RunPositionAndClassGrad, Positions(crop), {rows, none, none}, {}, {d_table, d_classes})[0].sizes(),
        hidden);
  }
  EXPECT_TRUE(at::equal(d_table, table));
  EXPECT_TRUE(at::equal(d_classes, classes));
  const Tensors out = RunOp(ops::RunPackedAttention, kAttention, {qkv, none});
  EXPECT_EQ(out[0].sizes(), a.sizes());
  EXPECT_EQ(out[1].sizes(), (at::IntArrayRef{kHeads, 0}));
  EXPECT_EQ(RunOp(ops::RunPackedAttentionGrad, kAttention, {a, qkv, out[0], out[1], none})[0].sizes(), qkv.sizes());
  EXPECT_EQ(RunOp(ops::RunDropClassTokens, kDrop, {rows, none})[0].sizes(), hidden);
  EXPECT_EQ(RunOp(ops::RunDropClassTokensGrad, kDrop, {rows, none})[0].sizes(), hidden);
  const at::Tensor folded = RunOp(ops::RunPixelShuffle, kShuffle, {rows, none})[0];
  EXPECT_EQ(folded.sizes(), (at::IntArrayRef{0, 4 * kHidden}));
  EXPECT_EQ(RunOp(ops::RunPixelShuffleGrad, kShuffle, {folded, none})[0].sizes(), hidden);
}

}  // namespace
}  // namespace planwright::executor
