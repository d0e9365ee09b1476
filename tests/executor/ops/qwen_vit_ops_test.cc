// The operations of docs/model/qwen_vit.md, compared with LibTorch's own interpolation and with plain formulas, number
// by number. cut_test.cc cuts them, and adjoint_test.cc holds their backward against slopes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor::qwen_vit_ops_test {
namespace {

constexpr int64_t kSide = 7, kHidden = 5, kHeads = 2, kHeadDim = 8;
constexpr double kTheta = 100;

using Grids = std::vector<std::vector<int64_t>>;
// Smaller, larger than and as large as the table; one row; one column; one patch.
const Grids kGrids = {{2, 4}, {12, 9}, {kSide, kSide}, {1, 6}, {5, 1}, {1, 1}};

at::Tensor GridOf(const Grids& grids) {
  at::Tensor all = at::empty({static_cast<int64_t>(grids.size()), 2}, at::kLong);
  for (size_t i = 0; i < grids.size(); ++i) all[static_cast<int64_t>(i)].copy_(at::tensor(grids[i], at::kLong));
  return all;
}

int64_t PatchesOf(const Grids& grids) {
  int64_t patches = 0;
  for (const auto& grid : grids) patches += grid[0] * grid[1];
  return patches;
}

at::Tensor Resized(const at::Tensor& table, int64_t rows, int64_t columns) {
  const at::Tensor image = table.view({1, kSide, kSide, kHidden}).permute({0, 3, 1, 2});
  return at::upsample_bilinear2d(image, at::IntArrayRef{rows, columns}, /*align_corners=*/true)
      .permute({0, 2, 3, 1})
      .reshape({-1, kHidden});
}

const Attributes kPositions = {{"side", kSide}};

TEST(AddPositions, MatchesLibTorch) {
  const at::Tensor e = Random({PatchesOf(kGrids), kHidden}), table = Random({kSide * kSide, kHidden});
  std::vector<at::Tensor> positions;
  for (const auto& grid : kGrids) positions.push_back(Resized(table, grid[0], grid[1]));
  const at::Tensor x = Op(kPositions).Run(ops::RunAddPositions, {e, GridOf(kGrids)}, {table})[0];
  EXPECT_TRUE(at::allclose(x, e + at::cat(positions), 1e-13, 1e-13));
}

TEST(AddPositions, ReadsATableOfTheImagesSizeExactly) {
  const at::Tensor table = Random({kSide * kSide, kHidden});
  const at::Tensor x =
      Op(kPositions).Run(ops::RunAddPositions, {at::zeros_like(table), GridOf({{kSide, kSide}})}, {table})[0];
  EXPECT_TRUE(at::equal(x, table));
}

TEST(AddPositions, GradientMatchesAutogradAndAdds) {
  const at::Tensor table = Random({kSide * kSide, kHidden}).requires_grad_(true),
                   dx = Random({PatchesOf(kGrids), kHidden});
  std::vector<at::Tensor> positions;
  for (const auto& grid : kGrids) positions.push_back(Resized(table, grid[0], grid[1]));
  at::cat(positions).backward(dx);
  const at::Tensor before = Random(table.sizes()), gradient = before.clone();
  EXPECT_TRUE(Op(kPositions).Run(ops::RunAddPositionsGrad, {dx, GridOf(kGrids)}, {}, {gradient}).empty());
  EXPECT_TRUE(at::allclose(gradient, before + table.grad(), 1e-12, 1e-12));
}

const Attributes kRope = {{"heads", kHeads}, {"head_dim", kHeadDim}, {"theta", kTheta}};

// Feature by feature.
at::Tensor PlainRope(const at::Tensor& x, const Grids& grids, int way) {
  const at::Tensor y = x.clone();
  int64_t patch = 0;
  for (const auto& grid : grids) {
    for (int64_t at = 0; at < grid[0] * grid[1]; ++at, ++patch) {
      for (int64_t head = 0; head < 2 * kHeads; ++head) {
        for (int64_t j = 0; j < kHeadDim / 2; ++j) {
          const bool of_row = j < kHeadDim / 4;
          const auto place = static_cast<double>(of_row ? at / grid[1] : at % grid[1]);
          const auto plane = static_cast<double>(of_row ? j : j - kHeadDim / 4);
          const double angle = way * place * std::pow(kTheta, -4 * plane / kHeadDim);
          const int64_t a = head * kHeadDim + j, b = a + kHeadDim / 2;
          const double first = x[patch][a].item<double>(), second = x[patch][b].item<double>();
          y[patch][a] = first * std::cos(angle) - second * std::sin(angle);
          y[patch][b] = second * std::cos(angle) + first * std::sin(angle);
        }
      }
    }
  }
  return y;
}

TEST(AxialRope, TurnsByRowAndColumn) {
  const Grids grids = {{2, 4}, {5, 1}};
  const at::Tensor x = Random({PatchesOf(grids), 3 * kHeads * kHeadDim});
  const at::Tensor y = Op(kRope).Run(ops::RunAxialRope, {x, GridOf(grids)})[0];
  EXPECT_TRUE(at::allclose(y, PlainRope(x, grids, 1), 1e-13, 1e-13));
  EXPECT_TRUE(at::equal(y.narrow(1, 2 * kHeads * kHeadDim, kHeads * kHeadDim),
                        x.narrow(1, 2 * kHeads * kHeadDim, kHeads * kHeadDim)))
      << "values pass";
  EXPECT_TRUE(
      at::allclose(Op(kRope).Run(ops::RunAxialRopeGrad, {x, GridOf(grids)})[0], PlainRope(x, grids, -1), 1e-13, 1e-13));
}

TEST(AxialRope, Bf16ComputesInFp32AndRoundsOnce) {
  const at::Tensor x = Random({PatchesOf(kGrids), 3 * kHeads * kHeadDim}).to(at::kBFloat16);
  const at::Tensor y = Op(kRope).Run(ops::RunAxialRope, {x, GridOf(kGrids)})[0];
  ASSERT_EQ(y.scalar_type(), at::kBFloat16);
  // half a unit in the last place of bf16
  EXPECT_TRUE(at::allclose(y.to(at::kDouble), PlainRope(x.to(at::kDouble), kGrids, 1), 0x1p-8, 1e-5));
}

TEST(AxialRope, MayTakeOverTheMemoryOfWhatItTurns) {
  for (const Handler handler : {ops::RunAxialRope, ops::RunAxialRopeGrad}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const at::Tensor x = Random({PatchesOf(kGrids), 3 * kHeads * kHeadDim}).to(type);
      const at::Tensor apart = Op(kRope).Run(handler, {x, GridOf(kGrids)})[0];
      EXPECT_FALSE(apart.is_alias_of(x));
      const at::Tensor y = Op(kRope).Overwriting().Run(handler, {x, GridOf(kGrids)})[0];
      EXPECT_TRUE(y.is_same(x));
      EXPECT_TRUE(y.equal(apart));
    }
  }
}

TEST(AxialRope, RefusesRowsThatAreNotThoseOfTheImages) {
  EXPECT_ANY_THROW(Op(kRope).Run(ops::RunAxialRope, {Random({7, 48}), GridOf({{2, 4}})}));
}

// Of whole vectors of 16 bytes and of others, also where patches start within one.
TEST(RepeatFrames, RepeatsEachChannel) {
  constexpr int64_t kFrames = 3;
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16}) {
    for (const int64_t pixels : {4, 5, 8}) {
      for (const int64_t moved : {0, 1}) {
        SCOPED_TRACE(testing::Message() << pixels << " " << type << " pixels, " << moved);
        const at::Tensor patches =
            Random({7 * 3 * pixels}).to(type).narrow(0, moved, 6 * 3 * pixels).view({2, 3, 3 * pixels});
        const at::Tensor y = Op({{"frames", kFrames}}).Run(ops::RunRepeatFrames, {patches})[0];
        EXPECT_EQ(y.scalar_type(), type);
        ASSERT_EQ(y.sizes(), (at::IntArrayRef{2, 3, 3 * kFrames * pixels}));
        for (int64_t channel = 0; channel < 3; ++channel) {
          for (int64_t frame = 0; frame < kFrames; ++frame) {
            EXPECT_TRUE(at::equal(y.narrow(2, (channel * kFrames + frame) * pixels, pixels),
                                  patches.narrow(2, channel * pixels, pixels)));
          }
        }
      }
    }
  }
}

TEST(NoImages, GivesZeroRowsAndLeavesTheTable) {
  const at::Tensor none = GridOf({}), rows = at::empty({0, kHidden}, at::kDouble),
                   qkv = at::empty({0, 3 * kHeads * kHeadDim}, at::kDouble);
  const at::Tensor table = Random({kSide * kSide, kHidden}), gradient = table.clone();
  EXPECT_EQ(Op(kPositions).Run(ops::RunAddPositions, {rows, none}, {table})[0].sizes(), rows.sizes());
  Op(kPositions).Run(ops::RunAddPositionsGrad, {rows, none}, {}, {gradient});
  EXPECT_TRUE(at::equal(gradient, table));
  EXPECT_EQ(Op(kRope).Run(ops::RunAxialRope, {qkv, none})[0].sizes(), qkv.sizes());
  EXPECT_EQ(Op({{"frames", int64_t{2}}}).Run(ops::RunRepeatFrames, {at::empty({0, 12}, at::kDouble)})[0].sizes(),
            (at::IntArrayRef{0, 24}));
}

}  // namespace
}  // namespace planwright::executor::qwen_vit_ops_test
