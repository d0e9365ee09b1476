// The kernels of the routers and of the statistics about routing.
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>

#include <optional>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

constexpr int64_t kHidden = 2688;

struct Sizes {
  int64_t positions, samples, experts, top_k, hidden;
  std::optional<int64_t> normalized = std::nullopt;  // none: as plans from before mean it
};

Attributes RouteAttributes(const Sizes& sizes) {
  Attributes attributes = {{"top_k", sizes.top_k}, {"scale", 2.5}};
  if (sizes.normalized) attributes["normalized"] = *sizes.normalized;
  return attributes;
}

class RoutingKernels : public Kernels {
 protected:
  // Logits are multiples of 1/64 and sums of few bits, so fp32 has them exactly, in any order of additions. Many are
  // equal: ties must go to the same expert. Different ones differ by more than the roundings of fp32. A bias of 2 in
  // either direction decides the choice without new near ties. Tokens times experts are a multiple of 16 and below
  // 32,768: else the CPU computes some scores by another path, and equal logits have scores that differ in the last
  // bit.
  static Tensors Route(const char* name, const Sizes& sizes) {
    const at::Tensor n = Random({sizes.positions, sizes.samples, sizes.hidden}).mul(1.2).round().clamp(-2, 2),
                     gate = Random({sizes.experts, sizes.hidden}).round().clamp(-1, 1).div(64),
                     bias = Random({sizes.experts}).mul(0.8).round().clamp(-1, 1).mul(2);
    return Check(
        name, ops::RunRoute,
        {.attributes = RouteAttributes(sizes), .inputs = {n}, .parameters = {gate, bias}, .wide_parameters = {1}});
  }

  // The same of a softmax. Its scores are close to each other where there are many experts, so logits lie four times as
  // far apart: multiples of 1/16.
  static void Softmax(const char* name, const Sizes& sizes) {
    const at::Tensor n = Random({sizes.positions, sizes.samples, sizes.hidden}).mul(1.2).round().clamp(-2, 2),
                     gate = Random({sizes.experts, sizes.hidden}).round().clamp(-1, 1).div(16);
    Check(name, ops::RunRouteSoftmax,
          {.attributes = {{"top_k", sizes.top_k}, {"normalized", sizes.normalized.value_or(1)}},
           .inputs = {n},
           .parameters = {gate}});
  }

  static void SoftmaxGrad(const char* name, const Sizes& sizes, bool trained) {
    const int64_t tokens = sizes.positions * sizes.samples;
    const at::Tensor n = Random({sizes.positions, sizes.samples, sizes.hidden}),
                     logits = Random({tokens, sizes.experts}), gate = Random({sizes.experts, sizes.hidden}),
                     ids = logits.argsort(-1, true).narrow(1, 0, sizes.top_k).contiguous(),
                     dweights = Random({tokens, sizes.top_k});
    KernelCheck check = {.attributes = {{"top_k", sizes.top_k}, {"normalized", sizes.normalized.value_or(1)}},
                         .inputs = {dweights, n, ids, logits},
                         .parameters = {gate},
                         .wide_inputs = {0, 3}};
    if (trained) {
      check.inputs.push_back(at::randint(2 * sizes.positions, {sizes.samples, sizes.experts}, at::kLong));
      check.gradients_like = {gate};
      check.attributes.insert({{"sequence", 2 * sizes.positions}, {"aux_scale", 300.0}});
    }
    Check(name, ops::RunRouteSoftmaxGrad, check);
  }

  static void RouteGrad(const char* name, const Sizes& sizes, bool trained) {
    const int64_t tokens = sizes.positions * sizes.samples;
    const at::Tensor n = Random({sizes.positions, sizes.samples, sizes.hidden}),
                     logits = Random({tokens, sizes.experts}), gate = Random({sizes.experts, sizes.hidden}),
                     ids = logits.argsort(-1, true).narrow(1, 0, sizes.top_k).contiguous(),
                     dweights = Random({tokens, sizes.top_k}), weights = Random({tokens, sizes.top_k});
    KernelCheck check = {.attributes = RouteAttributes(sizes),
                         .inputs = {dweights, n, weights, ids, logits},
                         .parameters = {gate},
                         .wide_inputs = {0, 2, 4}};
    if (trained) {
      check.inputs.push_back(at::randint(2 * sizes.positions, {sizes.samples, sizes.experts}, at::kLong));
      check.gradients_like = {gate};
      check.attributes.insert({{"sequence", 2 * sizes.positions}, {"aux_scale", 300.0}});
    }
    Check(name, ops::RunRouteGrad, check);
  }
};

TEST_F(RoutingKernels, Route) {
  const Tensors out = Route("real widths", {75, 2, 128, 6, kHidden});
  EXPECT_EQ(out[0].scalar_type(), at::kFloat);
  EXPECT_EQ(out[5].scalar_type(), at::kFloat);
  Route("one token", {1, 1, 128, 6, kHidden});
  Route("64 experts", {130, 1, 64, 6, 64});
  Route("experts that fill no warp", {40, 2, 20, 1, 48});
  Route("all experts", {8, 2, 6, 6, 48});
  Route("most experts and choices", {60, 1, 512, 16, 64});
}

// The weights of a token's experts are divided by their sum, or not.
TEST_F(RoutingKernels, RouteByBothRules) {
  for (const int64_t normalized : {0, 1}) {
    SCOPED_TRACE(normalized);
    Route("one expert", {40, 2, 20, 1, 48, normalized});
    Route("real widths", {75, 2, 128, 6, kHidden, normalized});
    Route("all experts", {8, 2, 6, 6, 48, normalized});
    Route("most experts and choices", {60, 1, 512, 16, 64, normalized});
    Route("too many choices: the plain form", {20, 2, 40, 17, 64, normalized});
  }
}

TEST_F(RoutingKernels, RouteInThePlainForm) {
  Route("too many experts", {20, 2, 520, 3, 64});
  Route("too many choices", {20, 2, 40, 17, 64});
}

TEST_F(RoutingKernels, RouteGrad) {
  for (const bool trained : {true, false}) {
    SCOPED_TRACE(trained ? "trained" : "frozen");
    RouteGrad("real widths", {75, 2, 128, 6, kHidden}, trained);
    RouteGrad("one token", {1, 1, 128, 6, kHidden}, trained);
    RouteGrad("one choice", {33, 3, 20, 1, 40}, trained);
    RouteGrad("an odd width", {33, 1, 70, 3, 37}, trained);
    RouteGrad("most experts and choices", {66, 1, 512, 16, 64}, trained);
    RouteGrad("too many experts", {20, 2, 520, 3, 64}, trained);
  }
}

TEST_F(RoutingKernels, RouteGradByBothRules) {
  for (const int64_t normalized : {0, 1}) {
    SCOPED_TRACE(normalized);
    for (const bool trained : {true, false}) {
      SCOPED_TRACE(trained ? "trained" : "frozen");
      RouteGrad("one choice", {33, 3, 20, 1, 40, normalized}, trained);
      RouteGrad("real widths", {75, 2, 128, 6, kHidden, normalized}, trained);
      RouteGrad("all experts", {33, 1, 6, 6, 40, normalized}, trained);
      RouteGrad("most experts and choices", {66, 1, 512, 16, 64, normalized}, trained);
    }
  }
}

TEST_F(RoutingKernels, SoftmaxByBothRules) {
  for (const int64_t normalized : {0, 1}) {
    SCOPED_TRACE(normalized);
    Softmax("real widths", {75, 2, 128, 8, 2048, normalized});
    Softmax("one token", {1, 1, 128, 8, 2048, normalized});
    Softmax("experts that fill no warp", {40, 2, 20, 1, 48, normalized});
    Softmax("all experts", {8, 2, 6, 6, 48, normalized});
    Softmax("most experts and choices", {60, 1, 512, 16, 64, normalized});
    Softmax("too many choices: the plain form", {20, 2, 40, 17, 64, normalized});
    for (const bool trained : {true, false}) {
      SCOPED_TRACE(trained ? "trained" : "frozen");
      SoftmaxGrad("real widths", {75, 2, 128, 8, 2048, normalized}, trained);
      SoftmaxGrad("one choice", {33, 3, 20, 1, 40, normalized}, trained);
      SoftmaxGrad("an odd width", {33, 1, 70, 3, 37, normalized}, trained);
      SoftmaxGrad("most experts and choices", {66, 1, 512, 16, 64, normalized}, trained);
      SoftmaxGrad("too many experts: the plain form", {20, 2, 520, 3, 64, normalized}, trained);
    }
  }
}

// Large logits: the largest is taken away before the exponential.
TEST_F(RoutingKernels, SoftmaxOfLargeLogits) {
  const at::Tensor n = at::full({3, 1, 8}, 16.0, at::TensorOptions(at::kCUDA).dtype(at::kBFloat16)),
                   gate = at::full({40, 8}, 4.0, n.options());
  const Tensors out =
      Op({{"top_k", int64_t{4}}, {"normalized", int64_t{0}}}).Run(ops::RunRouteSoftmax, {n}, {gate});  // logits 512
  EXPECT_LT(NormGap(out[3], at::full({3, 40}, 1.0 / 40, at::kDouble)), 1e-6);
  EXPECT_LT(NormGap(out[0], at::full({3, 4}, 1.0 / 40, at::kDouble)), 1e-6);
}

TEST_F(RoutingKernels, SequenceAuxLoss) {
  for (const Sizes& sizes : {Sizes{75, 2, 128, 6, 0}, Sizes{3000, 1, 64, 6, 0}, Sizes{1, 3, 5, 2, 0}}) {
    const at::Tensor probs = Random({sizes.positions * sizes.samples, sizes.experts}).abs(),
                     counts = at::randint(100, {sizes.samples, sizes.experts}, at::kLong);
    // All of it is fp64.
    Check("aux loss", ops::RunSequenceAuxLoss,
          {.attributes = {{"sequence", sizes.positions}, {"top_k", sizes.top_k}},
           .inputs = {probs, counts},
           .wide_inputs = {0},
           .tolerances = {.wide = 1e-12}});
  }
}

TEST_F(RoutingKernels, FingerprintAtEveryOffset) {
  const int64_t sequence = 48, samples = 2, k = 6;
  for (const int cp : {1, 2, 3}) {
    for (const int tp : {1, 2}) {
      Attributes attributes = {{"sequence", sequence}};
      if (cp > 1) attributes.insert({{"cp", int64_t{cp}}, {"zigzag", int64_t{1}}});
      const at::Tensor ids = at::randint(128, {sequence / cp / tp * samples, k}, at::kLong);
      for (int rank = 0; rank < cp * tp; ++rank) {
        Op op(attributes);
        op.InLayer(3).AtStep(5).OnLane(1, 2).OnCpRank(rank / tp, cp).OnTpRank(rank % tp, tp);
        EXPECT_EQ(op.Run(ops::RunRoutingFingerprint, {ids.to(at::kCUDA)})[0].item<int64_t>(),
                  op.Run(ops::RunRoutingFingerprint, {ids})[0].item<int64_t>())
            << cp << " " << tp << " " << rank;
      }
    }
  }
}

}  // namespace
}  // namespace planwright::executor
