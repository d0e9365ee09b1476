// In a frozen part a backward makes only the gradients of its inputs: the same to the bit as in a part that is trained.
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

void ExpectSameWithoutGradients(const char* kind, Handler handler, const Attributes& attributes, const Tensors& inputs,
                                const Tensors& parameters, const Tensors& gradients) {
  const Tensors trained = Op(attributes).Run(handler, inputs, parameters, gradients);
  const Tensors frozen = Op(attributes).Run(handler, inputs, parameters);
  ASSERT_EQ(frozen.size(), trained.size()) << kind;
  for (size_t i = 0; i < frozen.size(); ++i) EXPECT_TRUE(at::equal(frozen[i], trained[i])) << kind << " " << i;
}

constexpr int64_t kPositions = 5, kSamples = 2, kHeads = 4, kGroups = 2, kHeadDim = 3, kState = 4;
constexpr int64_t kInner = kHeads * kHeadDim, kBc = kGroups * kState;

TEST(Frozen, NormHandsItsGradientOn) {
  const at::Tensor x = Random({kPositions, kInner}), weight = Random({kInner});
  const at::Tensor scale = Op({{"eps", 1e-5}}).Run(ops::RunRmsNorm, {x}, {weight})[1];
  ExpectSameWithoutGradients("rms_norm_grad", ops::RunRmsNormGrad, {}, {Random({kPositions, kInner}), x, scale},
                             {weight}, FilledGradients({weight}));
}

TEST(Frozen, LayerNormHandsItsGradientOn) {
  const at::Tensor x = Random({kPositions, kInner});
  const Tensors parameters = {Random({kInner}), Random({kInner})};
  const Tensors made = Op({{"eps", 1e-5}}).Run(ops::RunLayerNorm, {x}, parameters);
  ExpectSameWithoutGradients("layer_norm_grad", ops::RunLayerNormGrad, {},
                             {Random({kPositions, kInner}), x, made[1], made[2]}, parameters,
                             FilledGradients(parameters));
}

TEST(Frozen, MixerHandsItsGradientOn) {
  Attributes attributes = {
      {"inner", kInner}, {"bc", kBc},           {"heads", kHeads}, {"groups", kGroups},
      {"state", kState}, {"chunk", int64_t{2}}, {"eps", 1e-5},     {"group_size", kInner / kGroups}};
  const at::Tensor zxbcdt = Random({kPositions, kSamples, 2 * kInner + 2 * kBc + kHeads});
  const Tensors conv = {Random({kInner + 2 * kBc, 1, 4}), Random({kInner + 2 * kBc})};
  const Tensors heads = {Random({kHeads}), Random({kHeads}), Random({kHeads})};
  const Tensors norm = {Random({kInner})};
  const at::Tensor xbc = Op(attributes).Run(ops::RunMambaConv, {zxbcdt}, conv)[0];
  const Tensors scan = Op(attributes).Run(ops::RunMambaScan, {xbc, zxbcdt}, heads);
  const Tensors gated = Op(attributes).Run(ops::RunGatedNorm, {scan[0], zxbcdt}, norm);
  const at::Tensor dy = Random({kPositions, kSamples, kInner}), dxbc = Random({kPositions, kSamples, kInner + 2 * kBc});
  ExpectSameWithoutGradients("gated_norm_grad", ops::RunGatedNormGrad, attributes, {dy, scan[0], zxbcdt, gated[1]},
                             norm, FilledGradients(norm));
  ExpectSameWithoutGradients("mamba_scan_grad", ops::RunMambaScanGrad, attributes, {dy, xbc, zxbcdt, scan[1]}, heads,
                             FilledGradients(heads));
  ExpectSameWithoutGradients("mamba_conv_grad", ops::RunMambaConvGrad, attributes, {dxbc, zxbcdt}, conv,
                             FilledGradients(conv));
}

TEST(Frozen, ExpertsHandTheirGradientOn) {
  constexpr int64_t kRows = 20, kExperts = 4, kWidth = 6, kFfn = 3;
  const at::Tensor counts = at::zeros({kExperts}, at::kLong) + kRows / kExperts;
  const Tensors matrices = {Random({kExperts, kFfn, kWidth}), Random({kExperts, kWidth, kFfn})};
  const at::Tensor rows = Random({kRows, kWidth}), weights = Random({kRows});
  const at::Tensor pre = Op().Run(ops::RunExperts, {rows, weights, counts}, matrices)[1];
  ExpectSameWithoutGradients("experts_grad", ops::RunExpertsGrad, {},
                             {Random({kRows, kWidth}), rows, weights, pre, counts}, matrices,
                             FilledGradients(matrices));
}

// A frozen model has no auxiliary loss either: its gradient is that of an auxiliary loss of no weight.
TEST(Frozen, RouterHasNoAuxiliaryLoss) {
  constexpr int64_t kExperts = 6, kWidth = 4, kTopK = 3;
  const at::Tensor n = Random({kPositions, kSamples, kWidth}), gate = Random({kExperts, kWidth}),
                   bias = Random({kExperts}), dweights = Random({kPositions * kSamples, kTopK});
  const Attributes route = {{"top_k", kTopK}, {"scale", 2.5}};
  Attributes weightless = route;
  weightless.insert({{"sequence", kPositions}, {"aux_scale", 0.0}});
  const Tensors out = Op(route).Run(ops::RunRoute, {n}, {gate, bias});
  const Tensors gradients = FilledGradients({gate});
  const at::Tensor frozen = Op(route).Run(ops::RunRouteGrad, {dweights, n, out[0], out[1], out[5]}, {gate})[0];
  const at::Tensor trained =
      Op(weightless).Run(ops::RunRouteGrad, {dweights, n, out[0], out[1], out[5], out[4]}, {gate}, gradients)[0];
  EXPECT_TRUE(at::equal(frozen, trained));
  EXPECT_GT(Added(gradients[0]).abs().max().item<double>(), 0);
}

}  // namespace
}  // namespace planwright::executor
