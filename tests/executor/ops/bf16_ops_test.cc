// bf16 on a CPU: every handler rounds its outputs once and keeps statistics, router, softmax and gradients of weights
// wide (docs/model/README.md#precision). Reference: the same handler in fp64 on the same numbers, which the other tests
// compare with plain references.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <set>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

// Relative to the norm of the whole tensor. A rounding to bf16 (8 significant bits) is off by 2^-9 at most, and by
// about half of that on average; an operation that adds terms rounds after each (`kTwice`). Wide results are off by
// roundings of fp32.
constexpr double kOnce = 0.003, kTwice = 0.006, kWide = 2e-6;
// Outputs that follow from values which the operation has rounded inside: products of rounded factors.
constexpr double kFromRounded = 0.02;

Tensors As(const Tensors& tensors, at::ScalarType narrow, at::ScalarType wide, const std::set<size_t>& wides) {
  Tensors result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor& x = tensors[i];
    result.push_back(x.is_floating_point() ? x.to(wides.contains(i) ? wide : narrow) : x);
  }
  return result;
}

struct Case {
  Attributes attributes = {};
  Tensors inputs, parameters = {}, gradients_like = {};
  std::set<size_t> wide_inputs = {}, wide_parameters = {};
  double narrow = kOnce;  // tolerance of outputs in bf16
  double gradients = kWide;
};

// Runs the handler in bf16 and in fp64 on the same numbers. Returns the outputs in bf16, for the backward.
Tensors Check(const char* name, Handler handler, const Case& made) {
  SCOPED_TRACE(name);
  const Tensors inputs = As(made.inputs, at::kBFloat16, at::kFloat, made.wide_inputs),
                parameters = As(made.parameters, at::kBFloat16, at::kFloat, made.wide_parameters);
  const auto exactly = [](const Tensors& tensors) { return As(tensors, at::kDouble, at::kDouble, {}); };
  Tensors gradients, exact_gradients;
  for (const at::Tensor& like : made.gradients_like) {
    gradients.push_back(at::zeros(like.sizes(), at::kFloat));
    exact_gradients.push_back(at::zeros(like.sizes(), at::kDouble));
  }
  const Tensors out = Op(made.attributes).Run(handler, inputs, parameters, gradients);
  const Tensors exact = Op(made.attributes).Run(handler, exactly(inputs), exactly(parameters), exact_gradients);
  EXPECT_EQ(out.size(), exact.size());
  for (size_t i = 0; i < std::min(out.size(), exact.size()); ++i) {
    SCOPED_TRACE(i);
    if (!exact[i].is_floating_point()) {
      EXPECT_EQ(Gap(out[i], exact[i]), 0);
    } else {
      EXPECT_LE(NormGap(out[i], exact[i]), out[i].scalar_type() == at::kBFloat16 ? made.narrow : kWide);
    }
  }
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_LE(NormGap(gradients[i], exact_gradients[i]), made.gradients) << "gradient " << i;
  }
  return out;
}

void ExpectTypes(const Tensors& tensors, const std::vector<at::ScalarType>& types) {
  ASSERT_EQ(tensors.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) EXPECT_EQ(tensors[i].scalar_type(), types[i]) << i;
}

TEST(Bf16, Linears) {
  const at::Tensor x = Random({30, 2, 32}), dy = Random({30, 2, 48}), weight = Random({48, 32}), bias = Random({48});
  ExpectTypes(Check("linear", ops::RunLinear, {.inputs = {x}, .parameters = {weight}}), {at::kBFloat16});
  Check("with bias", ops::RunLinear, {.inputs = {x}, .parameters = {weight, bias}, .narrow = kTwice});
  Check("input grad", ops::RunLinearInputGrad, {.inputs = {dy}, .parameters = {weight}});
  Check("weight grad", ops::RunLinearWeightGrad, {.inputs = {dy, x}, .gradients_like = {weight, bias}});
  Check("bias grad", ops::RunBiasGrad, {.inputs = {dy}, .gradients_like = {bias}});
}

TEST(Bf16, Norms) {
  const at::Tensor x = Random({30, 32}) + 1, dy = Random({30, 32}), weight = Random({32}), bias = Random({32});
  const Attributes eps = {{"eps", 1e-5}};
  const Tensors rms = Check("rms", ops::RunRmsNorm, {eps, {x}, {weight}});
  ExpectTypes(rms, {at::kBFloat16, at::kFloat});
  Check("rms grad", ops::RunRmsNormGrad, {{}, {dy, x, rms[1]}, {weight}, {weight}, {2}});
  const Tensors layer = Check("layer", ops::RunLayerNorm, {eps, {x}, {weight, bias}});
  ExpectTypes(layer, {at::kBFloat16, at::kFloat, at::kFloat});
  const Tensors dx =
      Check("layer grad", ops::RunLayerNormGrad, {{}, {dy, x, layer[1], layer[2]}, {weight}, {weight, bias}, {2, 3}});
  ExpectTypes(dx, {at::kBFloat16});
}

TEST(Bf16, Elementwise) {
  const at::Tensor x = Random({30, 32}), y = Random({30, 32}), bias = Random({32});
  Check("squared relu", ops::RunSquaredRelu, {.inputs = {x}});
  Check("squared relu grad", ops::RunSquaredReluGrad, {.inputs = {x, y}});
  Check("gelu", ops::RunGelu, {.inputs = {x}});
  Check("gelu grad", ops::RunGeluGrad, {.inputs = {x, y}});
  const Attributes erf = {{"erf", int64_t{1}}};
  Check("gelu by erf", ops::RunGelu, {.attributes = erf, .inputs = {x}});
  Check("gelu by erf grad", ops::RunGeluGrad, {.attributes = erf, .inputs = {x, y}});
  Check("add", ops::RunAdd, {.inputs = {x, y}});
  Check("add three", ops::RunAdd, {.inputs = {x, y, x}, .narrow = kTwice});
  Check("residual and bias", ops::RunAddResidualBias, {.inputs = {x, y}, .parameters = {bias}, .narrow = kTwice});
  ExpectTypes(Check("square sum", ops::RunSquareSum, {.inputs = {x}}), {at::kDouble, at::kLong});
}

TEST(Bf16, Mamba) {
  const int64_t heads = 4, groups = 2, p = 16, n = 16, inner = heads * p, bc = groups * n, S = 40, B = 2;
  const Attributes scan = {{"inner", inner},   {"bc", bc},   {"heads", heads},
                           {"groups", groups}, {"state", n}, {"chunk", int64_t{16}}};
  const Attributes gate = {{"inner", inner}, {"group_size", inner / groups}, {"eps", 1e-5}};
  const at::Tensor zxbcdt = Random({S, B, 2 * inner + 2 * bc + heads}), dy = Random({S, B, inner});
  const Tensors conv = {Random({inner + 2 * bc, 1, 4}), Random({inner + 2 * bc})},
                head = {Random({heads}), Random({heads}), Random({heads})};
  const at::Tensor xbc = Check("conv", ops::RunMambaConv, {scan, {zxbcdt}, conv})[0];
  Check("conv grad", ops::RunMambaConvGrad, {scan, {Random({S, B, inner + 2 * bc}), zxbcdt}, conv, conv});
  const Tensors y = Check("scan", ops::RunMambaScan, {scan, {xbc, zxbcdt}, head});
  ExpectTypes(y, {at::kBFloat16, at::kFloat});
  Check("scan grad", ops::RunMambaScanGrad,
        {.attributes = scan,
         .inputs = {dy, xbc, zxbcdt, y[1]},
         .parameters = head,
         .gradients_like = head,
         .wide_inputs = {3},
         .gradients = 1e-5});  // sums over all positions, of terms of both signs
  const Tensors norm = {Random({inner})};
  const Tensors yn = Check("gated norm", ops::RunGatedNorm, {gate, {y[0], zxbcdt}, norm});
  ExpectTypes(yn, {at::kBFloat16, at::kFloat});
  Check("gated norm grad", ops::RunGatedNormGrad, {gate, {dy, y[0], zxbcdt, yn[1]}, norm, norm, {3}});
}

TEST(Bf16, CausalAttention) {
  const int64_t q = 4, kv = 2, d = 16, S = 50, B = 2;
  const Attributes attributes = {{"q_heads", q}, {"kv_heads", kv}, {"head_dim", d}};
  const at::Tensor qkv = Random({S, B, (q + 2 * kv) * d}), da = Random({S, B, q * d});
  const Tensors out = Check("attention", ops::RunCausalAttention, {attributes, {qkv}});
  ExpectTypes(out, {at::kBFloat16, at::kFloat});
  Check("attention grad", ops::RunCausalAttentionGrad,
        {.attributes = attributes, .inputs = {da, qkv, out[0], out[1]}, .wide_inputs = {3}});
}

TEST(Bf16, RouterAndExperts) {
  const int64_t s = 10, B = 2, k = 2, H = 32, E = 8, L = 3, ffn = 48;
  const Attributes rows_of = {{"top_k", k}, {"sequence", s}, {"samples", B}};
  const Attributes route = {{"top_k", k}, {"scale", 2.5}, {"sequence", s}, {"aux_scale", 0.5}};
  const at::Tensor n = Random({s, B, H}), gate = Random({E, H}), bias = Random({E});
  // The bias has the master type. All that the router makes is wide, and it chooses as in fp64.
  const Tensors out = Check("route", ops::RunRoute,
                            {.attributes = route, .inputs = {n}, .parameters = {gate, bias}, .wide_parameters = {1}});
  ExpectTypes(out, {at::kFloat, at::kLong, at::kLong, at::kFloat, at::kLong, at::kFloat});
  Check("route grad", ops::RunRouteGrad,
        {.attributes = route,
         .inputs = {Random({s * B, k}), n, out[0], out[1], out[5], out[4]},
         .parameters = {gate},
         .gradients_like = {gate},
         .wide_inputs = {0, 2, 4}});
  Check("aux", ops::RunSequenceAuxLoss, {.attributes = route, .inputs = {out[3], out[4]}, .wide_inputs = {0}});
  // Divided by their sum or not: of one expert, of some and of all.
  for (const int64_t choices : {int64_t{1}, k, E}) {
    for (const int64_t normalized : {0, 1}) {
      SCOPED_TRACE(std::to_string(choices) + " experts, normalized " + std::to_string(normalized));
      Attributes rule = route;
      rule["top_k"] = choices, rule["normalized"] = normalized;
      const Tensors made =
          Check("route", ops::RunRoute,
                {.attributes = rule, .inputs = {n}, .parameters = {gate, bias}, .wide_parameters = {1}});
      Check("route grad", ops::RunRouteGrad,
            {.attributes = rule,
             .inputs = {Random({s * B, choices}), n, made[0], made[1], made[5], made[4]},
             .parameters = {gate},
             .gradients_like = {gate},
             .wide_inputs = {0, 2, 4}});
    }
  }
  const Tensors rows = Check("permute", ops::RunPermuteRows, {.inputs = {n, out[0], out[1]}, .wide_inputs = {1}});
  ExpectTypes(rows, {at::kBFloat16, at::kFloat, at::kLong});
  Check("permute grad", ops::RunPermuteRowsGrad,
        {.attributes = rows_of, .inputs = {Random({s * B * k, H}), Random({s * B * k}), rows[2]}, .wide_inputs = {1}});
  Check("unpermute", ops::RunUnpermuteRows, {.attributes = rows_of, .inputs = {Random({s * B * k, H}), rows[2]}});

  const at::Tensor counts = at::tensor({20, 0, 30, 10, 0, 40}, at::kLong).view({2, 3}), in = Random({100, H}),
                   weights = Random({100}), dout = Random({100, H});
  const Tensors matrices = {Random({L, ffn, H}), Random({L, H, ffn})};
  // The activation and its gradient are rounded between the two products.
  const Tensors made =
      Check("experts", ops::RunExperts,
            {.inputs = {in, weights, counts}, .parameters = matrices, .wide_inputs = {1}, .narrow = kFromRounded});
  ExpectTypes(made, {at::kBFloat16, at::kBFloat16});
  const at::Tensor pre = made[1];
  Tensors gradients = {at::zeros({L, ffn, H}, at::kFloat), at::zeros({L, H, ffn}, at::kFloat)};
  Tensors exact_gradients = {at::zeros({L, ffn, H}, at::kDouble), at::zeros({L, H, ffn}, at::kDouble)};
  const auto narrow = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  const auto exact = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  const Tensors back =
      Op().Run(ops::RunExpertsGrad, {narrow(dout), narrow(in), narrow(weights).to(at::kFloat), pre, counts},
               {narrow(matrices[0]), narrow(matrices[1])}, gradients);
  const Tensors exact_back = Op().Run(ops::RunExpertsGrad, {exact(dout), exact(in), exact(weights), exact(pre), counts},
                                      {exact(matrices[0]), exact(matrices[1])}, exact_gradients);
  ExpectTypes(back, {at::kBFloat16, at::kFloat});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_LE(NormGap(back[i], exact_back[i]), kFromRounded) << i;
    EXPECT_LE(NormGap(gradients[i], exact_gradients[i]), kFromRounded) << i;
  }
}

TEST(Bf16, EmbeddingAndLoss) {
  const int64_t S = 40, B = 2, H = 16, V = 24;
  const Attributes image = {{"image_token", int64_t{5}}};
  const at::Tensor x = Random({S, B, H}), table = Random({V, H}), tokens = at::randint(V, {B, S}, at::kLong);
  const int64_t images = (tokens == 5).sum().item<int64_t>();
  Check("embed", ops::RunEmbedTokens, {.attributes = image, .inputs = {tokens}, .parameters = {table}});
  Check("embed grad", ops::RunEmbedTokensGrad, {.attributes = image, .inputs = {x, tokens}, .gradients_like = {table}});
  const Tensors merged =
      Check("merge", ops::RunMergeImages, {.attributes = image, .inputs = {x, Random({images, H}), tokens}});
  Check("merge grad", ops::RunMergeImagesGrad, {.attributes = image, .inputs = {x, merged[1]}});
  const at::Tensor logits = Random({S, B, V}), mask = (tokens != 5).to(at::kDouble);
  const Tensors parts = Check("parts", ops::RunCrossEntropyParts, {.inputs = {logits, tokens}});
  const at::Tensor m = parts[0];
  const at::Tensor sums = Check("sums", ops::RunCrossEntropySums, {.inputs = {parts[1], m}, .wide_inputs = {0, 1}})[0];
  ExpectTypes({m, parts[1], sums}, {at::kFloat, at::kFloat, at::kFloat});
  ExpectTypes(Check("loss", ops::RunTokenLoss, {.inputs = {sums, mask}, .wide_inputs = {0}}),
              {at::kFloat, at::kDouble});
  Check("loss grad", ops::RunCrossEntropyGrad, {.inputs = {logits, m, sums, tokens, mask}, .wide_inputs = {1, 2}});
}

TEST(Bf16, VisionEncoder) {
  const int64_t h = 32, side = 8, classes = 2;
  const at::Tensor grid = at::tensor({4, 6, 2, 2}, at::kLong).view({2, 2}),
                   ids = at::tensor({0, 0, 1, 0}, at::kLong).view({2, 2});
  const int64_t patches = 28, tokens = patches + 2 * classes;
  const at::Tensor table = Random({1, side * side, h}), class_tokens = Random({classes, h}), dx = Random({tokens, h});
  const Attributes positions = {{"side", side}, {"crop", int64_t{1}}};
  Check("positions", ops::RunPositionAndClass,
        {.attributes = positions,
         .inputs = {Random({patches, h}), grid, ids},
         .parameters = {table, class_tokens},
         .narrow = kTwice});
  Check("positions grad", ops::RunPositionAndClassGrad,
        {.attributes = positions, .inputs = {dx, grid, ids}, .gradients_like = {table, class_tokens}});
  const Attributes heads = {{"heads", int64_t{4}}, {"head_dim", int64_t{8}}, {"class_tokens", classes}};
  const at::Tensor qkv = Random({tokens, 3 * h});
  const Tensors out = Check("attention", ops::RunPackedAttention, {.attributes = heads, .inputs = {qkv, grid}});
  ExpectTypes(out, {at::kBFloat16, at::kFloat});
  Check("attention grad", ops::RunPackedAttentionGrad,
        {.attributes = heads, .inputs = {dx, qkv, out[0], out[1], grid}, .wide_inputs = {3}});
  Check("drop classes", ops::RunDropClassTokens, {.attributes = {{"class_tokens", classes}}, .inputs = {dx, grid}});
  Check("shuffle", ops::RunPixelShuffle,
        {.attributes = {{"factor", int64_t{2}}}, .inputs = {Random({patches, h}), grid}});
}

}  // namespace
}  // namespace planwright::executor
