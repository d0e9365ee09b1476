// The encoder's operations with context parallelism: the parts of all cp coordinates together are what one rank with
// the whole lane computes, forward and backward.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor::vision_parts_test {
namespace {

constexpr int64_t kFactor = 2, kSide = 8, kHeads = 2, kHeadDim = 3, kWidth = kHeads * kHeadDim, kClasses = 3;

using Grids = std::vector<std::vector<int64_t>>;

struct Case {
  const char* name;
  Grids grids;
  int64_t cp;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class VisionParts : public testing::TestWithParam<Case> {
 protected:
  Attributes With(Attributes attributes, bool cp) const {
    attributes["class_tokens"] = kClasses;
    if (cp) attributes.insert({{"cp", GetParam().cp}, {"factor", kFactor}});
    return attributes;
  }
  Tensors Whole(Handler handler, const Attributes& attributes, const Tensors& inputs, const Tensors& parameters = {},
                const Tensors& gradients = {}) const {
    return Op(With(attributes, false)).Run(handler, inputs, parameters, gradients);
  }
  Tensors Part(int64_t coordinate, Handler handler, const Attributes& attributes, const Tensors& inputs,
               const Tensors& parameters = {}, const Tensors& gradients = {}) const {
    return Op(With(attributes, true))
        .OnCpRank(static_cast<int>(coordinate), static_cast<int>(GetParam().cp))
        .Run(handler, inputs, parameters, gradients);
  }
  int64_t Images() const { return static_cast<int64_t>(GetParam().grids.size()); }
  int64_t Patches() const { return grid().select(1, 0).mul(grid().select(1, 1)).sum().item<int64_t>(); }
  int64_t Tokens() const { return Patches() + Images() * kClasses; }

  at::Tensor grid() const {
    at::Tensor all = at::empty({Images(), 2}, at::kLong);
    for (int64_t i = 0; i < Images(); ++i) all[i].copy_(at::tensor(GetParam().grids[i], at::kLong));
    return all;
  }
  at::Tensor ids() const {
    at::Tensor all = at::empty({Images(), 2}, at::kLong);
    for (int64_t i = 0; i < Images(); ++i) all[i].copy_(at::tensor({7 + i / 2, i % 2}, at::kLong));
    return all;
  }
  // Rows of each part: of tokens, of image tokens, of patches.
  at::Tensor TokenCounts() const { return Part(0, ops::RunDealBands, {}, {grid()})[0]; }
  at::Tensor RowCounts() const { return Part(0, ops::RunDealBands, {}, {grid()})[1]; }
  at::Tensor PatchCounts() const { return RowCounts() * (kFactor * kFactor); }

  at::Tensor Slice(const at::Tensor& x, const at::Tensor& counts, int64_t coordinate) const {
    return Op({{"axis", std::string("cp")}})
        .OnCpRank(static_cast<int>(coordinate), static_cast<int>(GetParam().cp))
        .Run(ops::RunSliceRows, {x, counts})[0];
  }
};

TEST_P(VisionParts, CountsAreThoseOfTheRule) {
  // The rule of docs/layouts/sequence.md#encoder, band by band.
  const int64_t cp = GetParam().cp, lane = Patches() / (kFactor * kFactor);
  std::vector<int64_t> tokens(cp, 0), rows(cp, 0);
  int64_t a = 0;
  for (const auto& image : GetParam().grids) {
    for (int64_t band = 0; band < image[0] / kFactor; ++band) {
      const int64_t b = a + image[1] / kFactor, part = cp * (a + b) / (2 * lane);
      rows[part] += b - a;
      tokens[part] += (b - a) * kFactor * kFactor + (band == 0 ? kClasses : 0);
      a = b;
    }
  }
  EXPECT_TRUE(at::equal(TokenCounts(), at::tensor(tokens, at::kLong)));
  EXPECT_TRUE(at::equal(RowCounts(), at::tensor(rows, at::kLong)));
}

TEST_P(VisionParts, SlicesJoinToTheWhole) {
  const at::Tensor x = Random({Tokens(), 3});
  Tensors parts;
  for (int64_t part = 0; part < GetParam().cp; ++part) parts.push_back(Slice(x, TokenCounts(), part));
  EXPECT_TRUE(at::equal(at::cat(parts), x));
  EXPECT_THROW(Slice(Random({Tokens() + 1, 3}), TokenCounts(), 0), c10::Error);
}

TEST_P(VisionParts, PositionsAndClassTokens) {
  const at::Tensor e = Random({Patches(), kWidth}), dx = Random({Tokens(), kWidth});
  const Tensors parameters = {Random({1, kSide * kSide, kWidth}), Random({kClasses, kWidth})};
  for (const int64_t crop : {0, 1}) {
    const Attributes attributes = {{"side", kSide}, {"crop", crop}};
    const at::Tensor x = Whole(ops::RunPositionAndClass, attributes, {e, grid(), ids()}, parameters)[0];
    Tensors whole = FilledGradients(parameters), summed = FilledGradients(parameters), x_parts, de_parts;
    const at::Tensor de = Whole(ops::RunPositionAndClassGrad, attributes, {dx, grid(), ids()}, {}, whole)[0];
    for (int64_t part = 0; part < GetParam().cp; ++part) {
      const at::Tensor mine = Slice(e, PatchCounts(), part);
      x_parts.push_back(Part(part, ops::RunPositionAndClass, attributes, {mine, grid(), ids()}, parameters)[0]);
      de_parts.push_back(Part(part, ops::RunPositionAndClassGrad, attributes,
                              {Slice(dx, TokenCounts(), part), grid(), ids()}, {}, summed)[0]);
    }
    EXPECT_TRUE(at::equal(at::cat(x_parts), x));
    EXPECT_TRUE(at::equal(at::cat(de_parts), de));
    for (size_t i = 0; i < 2; ++i) EXPECT_SAME(summed[i], whole[i]);
  }
}

TEST_P(VisionParts, Attention) {
  const Attributes attributes = {{"heads", kHeads}, {"head_dim", kHeadDim}};
  const at::Tensor qkv = Random({Tokens(), 3 * kWidth}), da = Random({Tokens(), kWidth});
  const at::Tensor q = qkv.narrow(1, 0, kWidth).contiguous(), kv = qkv.narrow(1, kWidth, 2 * kWidth).contiguous();
  const Tensors whole = Whole(ops::RunPackedAttention, attributes, {qkv, grid()});
  const at::Tensor dqkv = Whole(ops::RunPackedAttentionGrad, attributes, {da, qkv, whole[0], whole[1], grid()})[0];
  Tensors a, lse, dq;
  at::Tensor dkv = at::zeros_like(kv);
  for (int64_t part = 0; part < GetParam().cp; ++part) {
    const at::Tensor mine = Slice(q, TokenCounts(), part);
    const Tensors out = Part(part, ops::RunPackedAttention, attributes, {mine, kv, grid()});
    const Tensors gradients = Part(part, ops::RunPackedAttentionGrad, attributes,
                                   {Slice(da, TokenCounts(), part), mine, kv, out[0], out[1], grid()});
    a.push_back(out[0]), lse.push_back(out[1]), dq.push_back(gradients[0]);
    dkv += gradients[1];
  }
  EXPECT_SAME(at::cat(a), whole[0]);
  EXPECT_SAME(at::cat(lse, 1), whole[1]);
  EXPECT_SAME(at::cat(dq), dqkv.narrow(1, 0, kWidth));
  EXPECT_SAME(dkv, dqkv.narrow(1, kWidth, 2 * kWidth));
}

TEST_P(VisionParts, ClassTokensAndPixelShuffle) {
  const at::Tensor x = Random({Tokens(), 3}), y = Whole(ops::RunDropClassTokens, {}, {x, grid()})[0];
  const Attributes shuffle = {{"factor", kFactor}};
  const at::Tensor z = Whole(ops::RunPixelShuffle, shuffle, {y, grid()})[0];
  Tensors y_parts, z_parts, dx, dy;
  for (int64_t part = 0; part < GetParam().cp; ++part) {
    y_parts.push_back(Part(part, ops::RunDropClassTokens, {}, {Slice(x, TokenCounts(), part), grid()})[0]);
    z_parts.push_back(Part(part, ops::RunPixelShuffle, {}, {y_parts.back(), grid()})[0]);
    dx.push_back(Part(part, ops::RunDropClassTokensGrad, {}, {Slice(y, PatchCounts(), part), grid()})[0]);
    dy.push_back(Part(part, ops::RunPixelShuffleGrad, {}, {Slice(z, RowCounts(), part), grid()})[0]);
  }
  EXPECT_TRUE(at::equal(at::cat(y_parts), y));
  EXPECT_TRUE(at::equal(at::cat(z_parts), z));
  EXPECT_TRUE(at::equal(at::cat(dx), Whole(ops::RunDropClassTokensGrad, {}, {y, grid()})[0]));
  EXPECT_TRUE(at::equal(at::cat(dy), y));
}

INSTANTIATE_TEST_SUITE_P(Lanes, VisionParts,
                         testing::Values(Case{"mixed", {{4, 6}, {2, 4}, {6, 2}}, 2},
                                         Case{"mixed_four", {{4, 6}, {2, 4}, {6, 2}}, 4},
                                         Case{"odd_parts", {{6, 2}, {2, 10}, {4, 4}, {2, 2}, {8, 6}}, 3},
                                         // ends with a part; then a part has no class token of its own
                                         Case{"images_end_with_parts", {{4, 4}, {2, 8}, {4, 2}, {2, 4}}, 2},
                                         Case{"one_tall_image", {{16, 2}}, 4}, Case{"the_whole_table", {{8, 8}}, 2},
                                         Case{"one_square", {{2, 2}}, 2},
                                         Case{"two_squares_for_four", {{2, 2}, {2, 2}}, 4}, Case{"no_images", {}, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::executor::vision_parts_test
