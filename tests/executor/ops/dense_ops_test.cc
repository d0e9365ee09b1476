// Linear, norms, activations, sums, embedding and merge against plain formulas and autograd.
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

constexpr int64_t kImage = 5;
const Attributes kEps = {{"eps", 1e-5}}, kImageToken = {{"image_token", kImage}};

TEST(Linear, ForwardAndGradientsMeetAutograd) {
  const at::Tensor x = Leaf(Random({5, 2, 3})), weight = Leaf(Random({4, 3})), bias = Leaf(Random({4})),
                   dy = Random({5, 2, 4});
  const at::Tensor y = x.matmul(weight.t()) + bias;
  (y * dy).sum().backward();

  EXPECT_SAME(Op().Run(ops::RunLinear, {x.detach()}, {weight.detach(), bias.detach()})[0], y);
  EXPECT_SAME(Op().Run(ops::RunLinearInputGrad, {dy}, {weight.detach()})[0], x.grad());
  const Tensors gradients = FilledGradients({weight, bias});
  EXPECT_TRUE(Op().Run(ops::RunLinearWeightGrad, {dy, x.detach()}, {}, gradients).empty());
  EXPECT_SAME(Added(gradients[0]), weight.grad());
  EXPECT_SAME(Added(gradients[1]), bias.grad());
  const Tensors alone = FilledGradients({bias});
  Op().Run(ops::RunBiasGrad, {dy}, {}, alone);
  EXPECT_SAME(Added(alone[0]), bias.grad());
}

TEST(Linear, NoRowsAddNothing) {
  const at::Tensor weight = Random({4, 3});
  EXPECT_EQ(Op().Run(ops::RunLinear, {Random({0, 3})}, {weight})[0].sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(Op().Run(ops::RunLinearInputGrad, {Random({0, 4})}, {weight})[0].sizes(), at::IntArrayRef({0, 3}));
  const Tensors gradients = FilledGradients({weight});
  Op().Run(ops::RunLinearWeightGrad, {Random({0, 4}), Random({0, 3})}, {}, gradients);
  EXPECT_EQ(Gap(Added(gradients[0]), at::zeros({4, 3}, at::kDouble)), 0);
}

// 600 ones summed in bf16 would stop at 256.
TEST(Linear, Bf16GradientsAreSummedWide) {
  const at::Tensor ones = Random({600, 1}).fill_(1).to(at::kBFloat16);
  const Tensors gradients = {Random({1, 1}).fill_(0).to(at::kFloat), Random({1}).fill_(0).to(at::kFloat)};
  Op().Run(ops::RunLinearWeightGrad, {ones, ones}, {}, gradients);
  Op().Run(ops::RunLinearWeightGrad, {ones.narrow(0, 0, 1), ones.narrow(0, 0, 1)}, {}, gradients);
  EXPECT_EQ(gradients[0].item<float>(), 601);
  EXPECT_EQ(gradients[1].item<float>(), 601);
}

// The first product of a step is written over whatever the step before has left, also where a lane has no rows.
TEST(Linear, FirstGradientsAreWritten) {
  const at::Tensor x = Random({5, 3}), dy = Random({5, 4});
  for (const int64_t rows : {5, 0}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const at::Tensor dy_rows = dy.narrow(0, 0, rows).to(type), x_rows = x.narrow(0, 0, rows).to(type);
      const at::ScalarType wide = type == at::kBFloat16 ? at::kFloat : type;
      const at::Tensor left = Random({4, 3}).fill_(NAN).to(wide), added = Random({4, 3}).fill_(0).to(wide);
      Op().Writing().Run(ops::RunLinearWeightGrad, {dy_rows, x_rows}, {}, {left});
      Op().Run(ops::RunLinearWeightGrad, {dy_rows, x_rows}, {}, {added});
      EXPECT_TRUE(left.equal(added)) << rows << " rows in " << type;
    }
  }
}

// Another shape would take the gradient out of its bucket.
TEST(Linear, FirstGradientsHaveTheShapeOfTheWeight) {
  const at::Tensor gradient = Random({3, 4}).fill_(7);
  EXPECT_THROW(Op().Writing().Run(ops::RunLinearWeightGrad, {Random({5, 4}), Random({5, 3})}, {}, {gradient}),
               c10::Error);
  EXPECT_EQ(gradient.sizes(), at::IntArrayRef({3, 4}));
}

TEST(RmsNorm, MeetsAutograd) {
  const at::Tensor x = Leaf(Random({5, 2, 6})), weight = Leaf(Random({6})), dy = Random({5, 2, 6});
  const at::Tensor y = reference::RmsNorm(x, weight, 1e-5);
  (y * dy).sum().backward();
  const Tensors out = Op(kEps).Run(ops::RunRmsNorm, {x.detach()}, {weight.detach()});
  EXPECT_SAME(out[0], y);
  EXPECT_EQ(out[1].sizes(), at::IntArrayRef({5, 2, 1}));
  const Tensors gradients = FilledGradients({weight});
  EXPECT_SAME(Op().Run(ops::RunRmsNormGrad, {dy, x.detach(), out[1]}, {weight.detach()}, gradients)[0], x.grad());
  EXPECT_SAME(Added(gradients[0]), weight.grad());
}

TEST(LayerNorm, MeetsAutograd) {
  const at::Tensor x = Leaf(Random({7, 6}) + 3), weight = Leaf(Random({6})), bias = Leaf(Random({6})),
                   dy = Random({7, 6});
  const at::Tensor y = reference::LayerNorm(x, weight, bias, 1e-6);
  (y * dy).sum().backward();
  const Tensors out = Op({{"eps", 1e-6}}).Run(ops::RunLayerNorm, {x.detach()}, {weight.detach(), bias.detach()});
  EXPECT_SAME(out[0], y);
  EXPECT_EQ(out[2].sizes(), at::IntArrayRef({7, 1}));
  const Tensors gradients = FilledGradients({weight, bias});
  EXPECT_SAME(Op().Run(ops::RunLayerNormGrad, {dy, x.detach(), out[1], out[2]}, {weight.detach()}, gradients)[0],
              x.grad());
  EXPECT_SAME(Added(gradients[0]), weight.grad());
  EXPECT_SAME(Added(gradients[1]), bias.grad());
}

TEST(Norms, NoRowsAddNothing) {
  const at::Tensor none = Random({0, 6}), weight = Random({6});
  const Tensors gradients = FilledGradients({weight, weight});
  const Tensors rms = Op(kEps).Run(ops::RunRmsNorm, {none}, {weight}),
                layer = Op(kEps).Run(ops::RunLayerNorm, {none}, {weight, weight});
  Op().Run(ops::RunRmsNormGrad, {none, none, rms[1]}, {weight}, gradients);
  Op().Run(ops::RunLayerNormGrad, {none, none, layer[1], layer[2]}, {weight}, gradients);
  EXPECT_EQ(Gap(Added(gradients[0]), at::zeros({6}, at::kDouble)), 0);
  EXPECT_EQ(Gap(Added(gradients[1]), at::zeros({6}, at::kDouble)), 0);
}

TEST(Activations, MeetAutograd) {
  const at::Tensor x = Leaf(Random({50})), dy = Random({50});
  const at::Tensor squared = x.relu() * x.relu();
  (squared * dy).sum().backward();
  EXPECT_SAME(Op().Run(ops::RunSquaredRelu, {x.detach()})[0], squared);
  EXPECT_SAME(Op().Run(ops::RunSquaredReluGrad, {dy, x.detach()})[0], x.grad());

  const at::Tensor again = Leaf(x), gelu = reference::Gelu(again);
  (gelu * dy).sum().backward();
  EXPECT_SAME(Op().Run(ops::RunGelu, {x.detach()})[0], gelu);
  EXPECT_SAME(Op().Run(ops::RunGeluGrad, {dy, x.detach()})[0], again.grad());

  const at::Tensor third = Leaf(x), exact = reference::GeluByErf(third);
  (exact * dy).sum().backward();
  Op by_erf({{"erf", int64_t{1}}});
  EXPECT_SAME(by_erf.Run(ops::RunGelu, {x.detach()})[0], exact);
  EXPECT_SAME(by_erf.Run(ops::RunGeluGrad, {dy, x.detach()})[0], third.grad());
  EXPECT_GT(Gap(gelu, exact), 1e-5);  // the two forms differ
}

TEST(Elementwise, SumsJoinsAndSlices) {
  const at::Tensor x = Random({4, 3}), y = Random({4, 3}), z = Random({4, 3}), bias = Random({3}), before = x.clone();
  EXPECT_SAME(Op().Run(ops::RunAdd, {x, y, z})[0], x + y + z);
  EXPECT_SAME(Op().Run(ops::RunAddResidualBias, {x, y}, {bias})[0], x + y + bias);
  EXPECT_EQ(Gap(x, before), 0);
  EXPECT_EQ(Gap(Op({{"dim", int64_t{1}}}).Run(ops::RunConcat, {x, y})[0], at::cat({x, y}, 1)), 0);
  EXPECT_EQ(Gap(Op({{"dim", int64_t{0}}}).OnTpRank(1, 2).Run(ops::RunLocalSlice, {x})[0], x.narrow(0, 2, 2)), 0);
  EXPECT_EQ(Gap(Op({{"dim", int64_t{1}}}).OnTpRank(2, 3).Run(ops::RunLocalSlice, {x})[0], x.narrow(1, 2, 1)), 0);
}

TEST(SquareSum, CountsEveryElementOnce) {
  const at::Tensor x = Random({1 << 12, 1100});  // more than one part
  const Tensors sums = Op().Run(ops::RunSquareSum, {x});
  EXPECT_SAME(sums[0], (x * x).sum().reshape({1}));
  EXPECT_EQ(sums[1].item<int64_t>(), x.numel());
}

TEST(SquareSum, NoRowsAddNothing) {
  const Tensors sums = Op().Run(ops::RunSquareSum, {Random({0, 6})});
  EXPECT_EQ(sums[0].item<double>(), 0);
  EXPECT_EQ(sums[1].item<int64_t>(), 0);
}

const at::Tensor& Tokens() {  // [B,S], image token 5
  static const at::Tensor tokens = at::tensor({1, 5, 7, 5, 0, 1, 3, 3, 5, 2}, at::kLong).view({2, 5});
  return tokens;
}

TEST(Embedding, ShardsSumToTheWholeTable) {
  const at::Tensor table = Leaf(Random({8, 3})), de = Random({5, 2, 3});
  const at::Tensor text = (Tokens() != kImage).t().unsqueeze(-1).to(at::kDouble);
  const at::Tensor e = table.index_select(0, Tokens().t().reshape({-1})).view({5, 2, 3}) * text;
  (e * de).sum().backward();

  at::Tensor sum = at::zeros({5, 2, 3}, at::kDouble);
  Tensors parts;
  for (int rank = 0; rank < 2; ++rank) {
    const at::Tensor shard = table.detach().narrow(0, 4 * rank, 4);
    const Tensors gradients = FilledGradients({shard});
    sum.add_(Op(kImageToken).OnTpRank(rank, 2).Run(ops::RunEmbedTokens, {Tokens()}, {shard})[0]);
    Op(kImageToken).OnTpRank(rank, 2).Run(ops::RunEmbedTokensGrad, {de, Tokens()}, {}, gradients);
    parts.push_back(Added(gradients[0]));
  }
  EXPECT_SAME(sum, e);
  EXPECT_SAME(at::cat(parts), table.grad());
}

TEST(Merge, FillsImagePositionsSampleBySample) {
  const at::Tensor e = Random({5, 2, 3}), rows = Random({3, 3}), dx = Random({5, 2, 3});
  const Tensors merged = Op(kImageToken).Run(ops::RunMergeImages, {e, rows, Tokens()});
  const std::vector<std::pair<int64_t, int64_t>> positions = {{1, 0}, {3, 0}, {3, 1}};  // (position, sample)
  at::Tensor expected = e.clone(), de = dx.clone(), drows = at::zeros({3, 3}, at::kDouble);
  for (int64_t i = 0; i < 3; ++i) {
    const auto [position, sample] = positions[i];
    expected[position][sample].copy_(rows[i]);
    drows[i].copy_(dx[position][sample]);
    de[position][sample].fill_(0);
  }
  EXPECT_EQ(Gap(merged[0], expected), 0);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(merged[1][i].item<int64_t>(), positions[i].first * 2 + positions[i].second);
  const Tensors grads = Op(kImageToken).Run(ops::RunMergeImagesGrad, {dx, merged[1]});
  EXPECT_EQ(Gap(grads[0], de), 0);
  EXPECT_EQ(Gap(grads[1], drows), 0);
}

TEST(Merge, CountsMustMeet) {
  const at::Tensor e = Random({5, 2, 3});
  EXPECT_THROW(Op(kImageToken).Run(ops::RunMergeImages, {e, Random({4, 3}), Tokens()}), c10::Error);
  EXPECT_THROW(Op(kImageToken).Run(ops::RunMergeImages, {e, Random({0, 3}), Tokens()}), c10::Error);
}

TEST(Merge, TextAloneTakesNoRows) {
  const at::Tensor text = at::zeros({2, 5}, at::kLong), e = Random({5, 2, 3});
  const Tensors merged = Op(kImageToken).Run(ops::RunMergeImages, {e, Random({0, 3}), text});
  EXPECT_EQ(Gap(merged[0], e), 0);
  const Tensors grads = Op(kImageToken).Run(ops::RunMergeImagesGrad, {e, merged[1]});
  EXPECT_EQ(Gap(grads[0], e), 0);
  EXPECT_EQ(grads[1].sizes(), at::IntArrayRef({0, 3}));
}

// Chunks r and 2 n - 1 - r of dim 0, one position at a time.
at::Tensor ZigzagPiece(const at::Tensor& whole, int64_t r, int64_t n) {
  const int64_t chunk = whole.size(0) / (2 * n);
  std::vector<at::Tensor> positions;
  for (int64_t of : {r, 2 * n - 1 - r}) {
    for (int64_t i = 0; i < chunk; ++i) positions.push_back(whole.narrow(0, of * chunk + i, 1));
  }
  return at::cat(positions);
}

TEST(Merge, PartsOfTheSequenceTogetherAreTheWhole) {
  const at::Tensor tokens = at::zeros({2, 8}, at::kLong);
  const std::vector<std::pair<int64_t, int64_t>> images = {
      {0, 1}, {0, 2}, {0, 7}, {1, 4}, {1, 5}};  // (sample, position)
  for (const auto& [sample, position] : images) tokens[sample][position].fill_(kImage);
  const at::Tensor e = Random({8, 2, 3}), rows = Random({5, 3}), dx = Random({8, 2, 3});
  Attributes part = kImageToken;
  part.insert({{"cp", int64_t{2}}, {"zigzag", int64_t{1}}});
  const Tensors merged = Op(kImageToken).Run(ops::RunMergeImages, {e, rows, tokens});
  const Tensors grads = Op(kImageToken).Run(ops::RunMergeImagesGrad, {dx, merged[1]});
  at::Tensor drows = at::zeros_like(rows);
  for (int r = 0; r < 2; ++r) {
    const Tensors own = Op(part).OnCpRank(r, 2).Run(ops::RunMergeImages, {ZigzagPiece(e, r, 2), rows, tokens});
    EXPECT_EQ(Gap(own[0], ZigzagPiece(merged[0], r, 2)), 0);
    const Tensors d = Op(part).OnCpRank(r, 2).Run(ops::RunMergeImagesGrad, {ZigzagPiece(dx, r, 2), own[1]});
    EXPECT_EQ(Gap(d[0], ZigzagPiece(grads[0], r, 2)), 0);
    for (int64_t i = 0; i < 5; ++i) {
      const int64_t chunk = images[i].second / 2;
      const bool here = chunk == r || chunk == 3 - r;
      EXPECT_EQ(own[1][i].item<int64_t>() >= 0, here);
      EXPECT_EQ(d[1][i].ne(0).any().item<bool>(), here);
    }
    drows += d[1];
  }
  EXPECT_EQ(Gap(drows, grads[1]), 0);
  // A rank whose part has no image at all.
  const at::Tensor text = at::zeros({1, 8}, at::kLong);
  const Tensors none = Op(part).OnCpRank(1, 2).Run(ops::RunMergeImages, {Random({4, 1, 3}), Random({0, 3}), text});
  EXPECT_EQ(none[1].numel(), 0);
  EXPECT_EQ(Op(part).OnCpRank(1, 2).Run(ops::RunMergeImagesGrad, {none[0], none[1]})[1].sizes(),
            at::IntArrayRef({0, 3}));
}

TEST(AddImages, AddsAtImageTokensSampleBySample) {
  const at::Tensor x = Random({5, 2, 3}), rows = Random({3, 3}), dy = Random({5, 2, 3});
  const Tensors added = Op(kImageToken).Run(ops::RunAddImages, {x, rows, Tokens()});
  const std::vector<std::pair<int64_t, int64_t>> positions = {{1, 0}, {3, 0}, {3, 1}};  // (position, sample)
  at::Tensor expected = x.clone(), drows = at::zeros({3, 3}, at::kDouble);
  for (int64_t i = 0; i < 3; ++i) {
    const auto [position, sample] = positions[i];
    expected[position][sample].add_(rows[i]);
    drows[i].copy_(dy[position][sample]);
    EXPECT_EQ(added[1][i].item<int64_t>(), position * 2 + sample);
  }
  EXPECT_EQ(Gap(added[0], expected), 0);
  EXPECT_EQ(Gap(Op(kImageToken).Run(ops::RunAddImagesGrad, {dy, added[1]})[0], drows), 0);
  EXPECT_THROW(Op(kImageToken).Run(ops::RunAddImages, {x, Random({4, 3}), Tokens()}), c10::Error);
}

TEST(AddImages, TextAloneTakesNoRows) {
  const at::Tensor text = at::zeros({2, 5}, at::kLong), x = Random({5, 2, 3});
  const Tensors added = Op(kImageToken).Run(ops::RunAddImages, {x, Random({0, 3}), text});
  EXPECT_EQ(Gap(added[0], x), 0);
  EXPECT_EQ(Op(kImageToken).Run(ops::RunAddImagesGrad, {x, added[1]})[0].sizes(), at::IntArrayRef({0, 3}));
}

// The part of a tp coordinate lies inside of the zigzag part of its cp coordinate.
TEST(AddImages, PartsOverTpAndCpTogetherAreTheWhole) {
  const at::Tensor tokens = at::zeros({2, 8}, at::kLong);
  const std::vector<std::pair<int64_t, int64_t>> images = {
      {0, 1}, {0, 2}, {0, 7}, {1, 4}, {1, 5}};  // (sample, position)
  for (const auto& [sample, position] : images) tokens[sample][position].fill_(kImage);
  const at::Tensor x = Random({8, 2, 3}), rows = Random({5, 3}), dy = Random({8, 2, 3});
  Attributes part = kImageToken;
  part.insert({{"cp", int64_t{2}}, {"zigzag", int64_t{1}}});
  const Tensors added = Op(kImageToken).Run(ops::RunAddImages, {x, rows, tokens});
  const at::Tensor whole = Op(kImageToken).Run(ops::RunAddImagesGrad, {dy, added[1]})[0];
  at::Tensor drows = at::zeros_like(rows);
  for (int c = 0; c < 2; ++c) {
    for (int t = 0; t < 2; ++t) {
      const auto own = [&](const at::Tensor& of) { return ZigzagPiece(of, c, 2).narrow(0, 2 * t, 2); };
      Op rank = Op(part);
      rank.OnTpRank(t, 2).OnCpRank(c, 2);
      const Tensors made = rank.Run(ops::RunAddImages, {own(x), rows, tokens});
      EXPECT_EQ(Gap(made[0], own(added[0])), 0);
      drows += rank.Run(ops::RunAddImagesGrad, {own(dy), made[1]})[0];
    }
  }
  EXPECT_EQ(Gap(drows, whole), 0);
}

TEST(LocalSlice, CutsOverTpInOrderAndOverCpZigzag) {
  const at::Tensor x = Random({3, 8});
  for (int r = 0; r < 2; ++r) {
    const at::Tensor over_tp =
        Op({{"dim", int64_t{1}}}).OnTpRank(r, 2).OnCpRank(1 - r, 2).Run(ops::RunLocalSlice, {x})[0];
    EXPECT_EQ(Gap(over_tp, x.narrow(1, 4 * r, 4)), 0);
    const Attributes zigzag = {{"dim", int64_t{1}}, {"axis", std::string("cp")}, {"zigzag", int64_t{1}}};
    const at::Tensor over_cp = Op(zigzag).OnCpRank(r, 2).OnTpRank(1 - r, 2).Run(ops::RunLocalSlice, {x})[0];
    EXPECT_EQ(Gap(over_cp, ZigzagPiece(x.t(), r, 2).t()), 0);
  }
  EXPECT_THROW(Op({{"dim", int64_t{0}}, {"axis", std::string("cp")}, {"zigzag", int64_t{1}}})
                   .OnCpRank(0, 2)
                   .Run(ops::RunLocalSlice, {x}),
               c10::Error);
}

TEST(Split, GivesConsecutiveParts) {
  const at::Tensor x = Random({2, 3, 7});
  const auto part = [](int64_t width) {
    return Output{"part", {.dtype = DType::kFp64, .dims = {int64_t{2}, int64_t{3}, width}}};
  };
  const Tensors parts = Op({{"dim", int64_t{2}}}).WithOutputs({part(4), part(3)}).Run(ops::RunSplit, {x});
  EXPECT_EQ(Gap(parts[0], x.narrow(2, 0, 4)), 0);
  EXPECT_EQ(Gap(parts[1], x.narrow(2, 4, 3)), 0);
  EXPECT_THROW(Op({{"dim", int64_t{2}}}).WithOutputs({part(4)}).Run(ops::RunSplit, {x}), c10::Error);
}

// Of whole vectors of 16 bytes and of others, also where x starts within one or has strides.
TEST(SplitFeatures, GivesBothPartsInCopies) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    for (const auto& [width, first] : std::vector<std::pair<int64_t, int64_t>>{{24, 8}, {24, 5}, {23, 8}, {7, 3}}) {
      const at::Tensor all = Random({7 * width}).to(type);
      for (const at::Tensor& x :
           {all.narrow(0, 0, 6 * width).view({2, 3, width}), all.narrow(0, 1, 6 * width).view({2, 3, width}),
            all.narrow(0, 0, 6 * width).view({2, width, 3}).transpose(1, 2)}) {
        SCOPED_TRACE(testing::Message() << first << " of " << x.sizes() << " " << type << " " << x.strides());
        const Attributes cut = {{"first", first}};
        for (Handler handler : {ops::RunSplitFeatures, ops::RunJoinFeaturesGrad}) {
          const Tensors parts = Op(cut).Run(handler, {x});
          ASSERT_EQ(parts.size(), 2u);
          EXPECT_TRUE(at::equal(parts[0], x.narrow(2, 0, first)));
          EXPECT_TRUE(at::equal(parts[1], x.narrow(2, first, width - first)));
          for (const at::Tensor& part : parts) {
            EXPECT_TRUE(part.is_contiguous());
            EXPECT_EQ(part.scalar_type(), type);
            EXPECT_FALSE(part.is_alias_of(x));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace planwright::executor
