// Rotary embedding, norms of heads, gated MLP, softmax router and gated experts against plain formulas and autograd.
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "executor/ops/rope_speeds.h"
#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

using Integer = int64_t;

at::Tensor Silu(const at::Tensor& x) { return x / (1 + (-x).exp()); }

TEST(GatedSilu, MeetsAutograd) {
  const at::Tensor gu = Leaf(Random({5, 2, 8})), dh = Random({5, 2, 4});
  const at::Tensor h = Silu(gu.narrow(2, 0, 4)) * gu.narrow(2, 4, 4);
  (h * dh).sum().backward();
  Op op({{"width", Integer{4}}});
  EXPECT_SAME(op.Run(ops::RunGatedSilu, {gu.detach()})[0], h);
  EXPECT_SAME(op.Run(ops::RunGatedSiluGrad, {dh, gu.detach()})[0], gu.grad());
}

Attributes Heads(Integer q, Integer k, Integer v, Integer head_dim) {
  return {{"q_heads", q}, {"k_heads", k}, {"v_heads", v}, {"head_dim", head_dim}, {"eps", 1e-5}};
}

TEST(HeadNorm, MeetsAutogradHeadByHead) {
  // All heads; keys and values alone, as with more ranks than key heads; queries alone.
  for (const auto& [q, k, v] : std::vector<std::array<Integer, 3>>{{4, 2, 2}, {0, 2, 2}, {4, 0, 0}}) {
    SCOPED_TRACE(std::to_string(q));
    const at::Tensor x = Leaf(Random({3, 2, (q + k + v) * 6})), dy = Random({3, 2, (q + k + v) * 6});
    const at::Tensor q_weight = Leaf(Random({6})), k_weight = Leaf(Random({6}));
    Tensors heads, weights;
    for (Integer head = 0; head < q + k + v; ++head) {
      const at::Tensor its = x.narrow(2, head * 6, 6);
      heads.push_back(head < q       ? reference::RmsNorm(its, q_weight, 1e-5)
                      : head < q + k ? reference::RmsNorm(its, k_weight, 1e-5)
                                     : its);
    }
    if (q > 0) weights.push_back(q_weight);
    if (k > 0) weights.push_back(k_weight);
    const at::Tensor y = at::cat(heads, 2);
    (y * dy).sum().backward();
    Tensors plain;
    for (const at::Tensor& weight : weights) plain.push_back(weight.detach());
    Op op(Heads(q, k, v, 6));
    const Tensors out = op.Run(ops::RunHeadNorm, {x.detach()}, plain);
    EXPECT_SAME(out[0], y);
    EXPECT_EQ(out[1].sizes(), at::IntArrayRef({3, 2, q + k}));
    const Tensors gradients = FilledGradients(plain);
    EXPECT_SAME(op.Run(ops::RunHeadNormGrad, {dy, x.detach(), out[1]}, plain, gradients)[0], x.grad());
    for (size_t i = 0; i < weights.size(); ++i) EXPECT_SAME(Added(gradients[i]), weights[i].grad());
    EXPECT_SAME(op.Run(ops::RunHeadNormGrad, {dy, x.detach(), out[1]}, plain)[0], x.grad());  // frozen
  }
}

Attributes Rope(Integer q, Integer k, Integer v, Integer head_dim, Integer rotary, double theta) {
  Attributes all = Heads(q, k, v, head_dim);
  all.insert({{"rotary", rotary}, {"theta", theta}});
  return all;
}

TEST(Rope, TurnsEachPlaneByItsPosition) {
  // Two query heads, a key head and a value head of 6 features, of which 4 turn. Positions restart, as of documents.
  const at::Tensor x = Leaf(Random({3, 2, 24})), dy = Random({3, 2, 24});
  const at::Tensor positions = at::tensor({0, 5, 1, 6, 0, 7}, at::kLong).view({1, 3, 2});
  const at::Tensor of = positions[0].to(at::kDouble);
  Tensors features;
  for (Integer head = 0; head < 4; ++head) {
    const auto feature = [&](Integer j) { return x.select(2, head * 6 + j); };
    Tensors turned(6);
    for (Integer j = 0; j < 6; ++j) turned[j] = feature(j);
    for (Integer j = 0; head < 3 && j < 2; ++j) {
      const at::Tensor angle = of * std::pow(100.0, -static_cast<double>(2 * j) / 4);
      turned[j] = feature(j) * angle.cos() - feature(j + 2) * angle.sin();
      turned[j + 2] = feature(j + 2) * angle.cos() + feature(j) * angle.sin();
    }
    features.insert(features.end(), turned.begin(), turned.end());
  }
  const at::Tensor y = at::stack(features, 2);
  (y * dy).sum().backward();
  Op op(Rope(2, 1, 1, 6, 4, 100));
  EXPECT_SAME(op.Run(ops::RunRope, {x.detach(), positions})[0], y);
  EXPECT_SAME(op.Run(ops::RunRopeGrad, {dy, positions})[0], x.grad());
}

// Planes 1 and 4 of 7 turn by rows, plane 2 by columns, and the others by places in the text.
TEST(Rope, TurnsPlanesByRowsAndColumns) {
  const at::Tensor x = Leaf(Random({3, 2, 14})), dy = Random({3, 2, 14});
  const at::Tensor positions =
      at::tensor({0, 5, 1, 6, 0, 7, 3, 0, 2, 9, 4, 1, 8, 2, 5, 0, 6, 11}, at::kLong).view({3, 3, 2});
  const std::vector<Integer> axis = {0, 1, 2, 0, 1, 0, 0};
  Tensors features(14);
  for (Integer j = 0; j < 7; ++j) {
    const at::Tensor angle = positions[axis[j]].to(at::kDouble) * std::pow(100.0, -static_cast<double>(2 * j) / 14);
    features[j] = x.select(2, j) * angle.cos() - x.select(2, j + 7) * angle.sin();
    features[j + 7] = x.select(2, j + 7) * angle.cos() + x.select(2, j) * angle.sin();
  }
  const at::Tensor y = at::stack(features, 2);
  (y * dy).sum().backward();
  Attributes attributes = Rope(1, 0, 0, 14, 14, 100);
  attributes.insert({{"height", Integer{2}}, {"width", Integer{1}}});
  Op op(attributes);
  EXPECT_SAME(op.Run(ops::RunRope, {x.detach(), positions})[0], y);
  EXPECT_SAME(op.Run(ops::RunRopeGrad, {dy, positions})[0], x.grad());
  EXPECT_ANY_THROW(op.Run(ops::RunRope, {x.detach(), positions.narrow(0, 0, 1)}));
}

TEST(Rope, BackIsTheInverseButForTheAmplitude) {
  Attributes attributes = Rope(1, 1, 0, 8, 8, 1e6);
  attributes.insert({{"scaling", Integer{3}}, {"factor", 4.0}, {"original", 32768.0}, {"low", 1.0}, {"high", 32.0}});
  attributes["amplitude"] = 1.25;
  Op op(attributes);
  const at::Tensor x = Random({4, 1, 16});
  const at::Tensor positions = at::tensor({0, 1, 70000, 131072}, at::kLong).view({1, 4, 1});
  const at::Tensor there = op.Run(ops::RunRope, {x, positions})[0];
  EXPECT_SAME(op.Run(ops::RunRopeGrad, {there, positions})[0], x * (1.25 * 1.25));
}

TEST(Rope, MayTakeOverTheMemoryOfWhatItTurns) {
  const at::Tensor positions = at::tensor({0, 5, 1, 6, 0, 7}, at::kLong).view({1, 3, 2});
  for (const Handler handler : {ops::RunRope, ops::RunRopeGrad}) {
    for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
      const at::Tensor x = Random({3, 2, 24}).to(type);
      Op op(Rope(2, 1, 1, 6, 4, 100));
      const at::Tensor apart = op.Run(handler, {x, positions})[0];
      EXPECT_FALSE(apart.is_alias_of(x));
      const at::Tensor y = op.Overwriting().Run(handler, {x, positions})[0];
      EXPECT_TRUE(y.is_same(x));
      EXPECT_TRUE(y.equal(apart));
    }
  }
}

// Computed by transformers 5.23, in fp32: its rounding is what these may differ by.
TEST(RopeSpeeds, AreThoseOfTransformers) {
  struct Case {
    const char* name;
    Integer rotary;
    double theta;
    Attributes scaling;
    std::vector<std::pair<size_t, double>> speeds;
  };
  const std::vector<Case> cases = {
      {"llama3",
       128,
       500000,
       {{"scaling", Integer{2}}, {"factor", 8.0}, {"original", 8192.0}, {"low", 1.0}, {"high", 4.0}},
       {{0, 1.0},
        {1, 0.8146172165870667},
        {7, 0.2380538135766983},
        {20, 0.016560440883040428},
        {28, 0.0032114461064338684},
        {30, 0.0013718936825171113},
        {33, 0.0003126936499029398},
        {35, 9.556212171446532e-05},
        {40, 3.428102354519069e-05},
        {50, 4.411534519022098e-06},
        {63, 3.068925877869333e-07}}},
      {"yarn",
       128,
       1000000,
       {{"scaling", Integer{3}}, {"factor", 4.0}, {"original", 32768.0}, {"low", 1.0}, {"high", 32.0}},
       {{0, 1.0},
        {1, 0.8058422207832336},
        {7, 0.22067339718341827},
        {20, 0.01333521492779255},
        {28, 0.0018482765881344676},
        {30, 0.0010643609566614032},
        {33, 0.0004503235686570406},
        {35, 0.0002462583943270147},
        {40, 4.4456985051510856e-05},
        {50, 5.133812464919174e-06},
        {63, 3.102344408034696e-07}}},
      {"linear",
       64,
       10000,
       {{"scaling", Integer{1}}, {"factor", 2.5}},
       {{0, 0.4},
        {1, 0.2999576926231384},
        {7, 0.0533408597111702},
        {20, 0.0012649111449718475},
        {28, 0.0001264911115868017},
        {31, 5.3340860176831484e-05}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Instruction instruction;
    instruction.attributes = c.scaling;
    instruction.attributes.insert({{"rotary", c.rotary}, {"theta", c.theta}});
    const ops::RopeSpeeds speeds(instruction);
    ASSERT_EQ(speeds.of.size(), static_cast<size_t>(c.rotary / 2));
    for (const auto& [plane, speed] : c.speeds) EXPECT_NEAR(speeds.of[plane] / speed, 1, 1e-6) << plane;
  }
}

TEST(RouteSoftmax, MeetsAutograd) {
  constexpr Integer kPositions = 5, kSamples = 2, kTokens = 10, kExperts = 6;
  for (const Integer top_k : {1, 3, 6}) {
    for (const Integer normalized : {0, 1}) {
      SCOPED_TRACE(std::to_string(top_k) + " " + std::to_string(normalized));
      const at::Tensor n = Leaf(Random({kPositions, kSamples, 4})), gate = Leaf(Random({kExperts, 4}));
      const at::Tensor logits = n.view({kTokens, 4}).matmul(gate.t());
      const at::Tensor probs = logits.exp() / logits.exp().sum({1}, true);
      Op forward({{"top_k", top_k}, {"normalized", normalized}});
      const Tensors out = forward.Run(ops::RunRouteSoftmax, {n.detach()}, {gate.detach()});
      const at::Tensor chosen = probs.gather(1, out[1]);
      const at::Tensor weights = normalized != 0 ? chosen / chosen.sum({1}, true) : chosen;
      EXPECT_SAME(out[0], weights);
      EXPECT_SAME(out[3], probs);
      EXPECT_EQ(out[2].sum().item<Integer>(), kTokens * top_k);
      EXPECT_EQ(Gap(out[4].sum(0), out[2]), 0);
      // No expert that was left out is better than one that was chosen.
      const at::Tensor left_out = probs.detach().scatter(1, out[1], 0).amax({1});
      EXPECT_GE((chosen.detach().amin({1}) - left_out).min().item<double>(), 0);
      const at::Tensor dweights = Random({kTokens, top_k});
      reference::Routing routing;
      routing.probs = probs;
      routing.aux_chosen = at::zeros({kTokens, kExperts}, at::kDouble).scatter(1, out[1], 1);
      ((weights * dweights).sum() + 0.7 * reference::AuxLoss(routing, kSamples, top_k)).backward();
      const Tensors gradients = FilledGradients({gate});
      Op backward({{"top_k", top_k}, {"normalized", normalized}, {"sequence", kPositions}, {"aux_scale", 0.7}});
      EXPECT_SAME(backward.Run(ops::RunRouteSoftmaxGrad, {dweights, n.detach(), out[1], out[5], out[4]},
                               {gate.detach()}, gradients)[0],
                  n.grad());
      EXPECT_SAME(Added(gradients[0]), gate.grad());
    }
  }
}

TEST(GatedExperts, MeetAutograd) {
  // Rows of three experts from two ranks, in the order in which they came.
  const at::Tensor counts = at::tensor({2, 0, 3, 1, 2, 1}, at::kLong).view({2, 3});
  const std::vector<Integer> expert_of = {0, 0, 2, 2, 2, 0, 1, 1, 2};
  const at::Tensor rows = Leaf(Random({9, 4})), weights = Leaf(Random({9})), gate_up = Leaf(Random({3, 10, 4})),
                   down = Leaf(Random({3, 4, 5})), dout = Random({9, 4});
  Tensors made;
  for (size_t row = 0; row < expert_of.size(); ++row) {
    const auto r = static_cast<Integer>(row);
    const at::Tensor pre = gate_up[expert_of[row]].mv(rows[r]);
    const at::Tensor act = Silu(pre.narrow(0, 0, 5)) * pre.narrow(0, 5, 5);
    made.push_back(down[expert_of[row]].mv(act) * weights[r]);
  }
  const at::Tensor out = at::stack(made);
  (out * dout).sum().backward();
  Op op({{"ffn", Integer{5}}});
  const Tensors got =
      op.Run(ops::RunGatedExperts, {rows.detach(), weights.detach(), counts}, {gate_up.detach(), down.detach()});
  EXPECT_SAME(got[0], out);
  const Tensors gradients = FilledGradients({gate_up, down});
  const Tensors back = op.Run(ops::RunGatedExpertsGrad, {dout, rows.detach(), weights.detach(), got[1], counts},
                              {gate_up.detach(), down.detach()}, gradients);
  EXPECT_SAME(back[0], rows.grad());
  EXPECT_SAME(back[1], weights.grad());
  EXPECT_SAME(Added(gradients[0]), gate_up.grad());
  EXPECT_SAME(Added(gradients[1]), down.grad());
}

}  // namespace
}  // namespace planwright::executor
