// On a GPU: every handler of the language model gives the same results as on the CPU, which the other tests check. fp64
// shows that it is the same mathematics. bf16, at sizes that the kernels accept, goes through flash attention and
// grouped products.
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <set>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

class Gpu : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!at::hasCUDA()) GTEST_SKIP() << "no GPU";
  }

  double Tolerance() const { return GetParam() == at::kDouble ? 1e-11 : 0.015; }

  // Runs on both, compares outputs and gradients, and returns the fp64 outputs of the CPU. Inputs in `host` stay in
  // host memory.
  Tensors Both(const char* name, Handler handler, const Attributes& attributes, const Tensors& inputs,
               const Tensors& parameters = {}, const Tensors& gradient_like = {}, const std::set<size_t>& host = {}) {
    SCOPED_TRACE(name);
    Tensors exact_gradients, gradients;
    for (const at::Tensor& like : gradient_like) {
      exact_gradients.push_back(at::zeros_like(like));
      gradients.push_back(at::zeros_like(like).to(at::kCUDA, GetParam() == at::kDouble ? at::kDouble : at::kFloat));
    }
    const Tensors exact = Op(attributes).Run(handler, Rounded(inputs), Rounded(parameters), exact_gradients);
    const Tensors actual = Op(attributes).Run(handler, OnGpu(inputs, host), OnGpu(parameters, {}), gradients);
    Compare(actual, exact);
    Compare(gradients, exact_gradients);
    return exact;
  }

 private:
  // The numbers that the GPU gets, in fp64.
  Tensors Rounded(const Tensors& tensors) const {
    Tensors result;
    for (const at::Tensor& x : tensors) result.push_back(x.is_floating_point() ? x.to(GetParam()).to(at::kDouble) : x);
    return result;
  }
  Tensors OnGpu(const Tensors& tensors, const std::set<size_t>& host) const {
    Tensors result;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const at::Tensor& x = tensors[i];
      result.push_back(host.contains(i) ? x : x.to(at::kCUDA, x.is_floating_point() ? GetParam() : x.scalar_type()));
    }
    return result;
  }
  void Compare(const Tensors& actual, const Tensors& exact) const {
    ASSERT_EQ(actual.size(), exact.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSERT_EQ(actual[i].sizes(), exact[i].sizes()) << i;
      EXPECT_TRUE(actual[i].is_cuda()) << i;
      const at::Tensor a = actual[i].cpu().to(at::kDouble), b = exact[i].to(at::kDouble);
      if (!exact[i].is_floating_point()) {
        EXPECT_EQ(Gap(a, b), 0) << i;
      } else {
        EXPECT_LE((a - b).norm().item<double>(), Tolerance() * b.norm().item<double>()) << i;
      }
    }
  }
};

TEST_P(Gpu, Mixer) {
  const int64_t heads = 4, groups = 2, p = 16, n = 16, inner = heads * p, bc = groups * n, S = 200, B = 2;
  const Attributes scan = {{"inner", inner},   {"bc", bc},   {"heads", heads},
                           {"groups", groups}, {"state", n}, {"chunk", int64_t{64}}};
  const Attributes gate = {{"inner", inner}, {"group_size", inner / groups}, {"eps", 1e-5}};
  const at::Tensor zxbcdt = Random({S, B, 2 * inner + 2 * bc + heads}), dy = Random({S, B, inner});
  const Tensors conv = {Random({inner + 2 * bc, 1, 4}), Random({inner + 2 * bc})},
                head = {Random({heads}), Random({heads}), Random({heads})};
  const at::Tensor xbc = Both("conv", ops::RunMambaConv, scan, {zxbcdt}, conv)[0];
  Both("conv grad", ops::RunMambaConvGrad, scan, {Random({S, B, inner + 2 * bc}), zxbcdt}, conv, conv);
  const Tensors y = Both("scan", ops::RunMambaScan, scan, {xbc, zxbcdt}, head);
  if (GetParam() == at::kDouble) Both("scan grad", ops::RunMambaScanGrad, scan, {dy, xbc, zxbcdt, y[1]}, head, head);
  const Tensors norm = {Random({inner})};
  const Tensors yn = Both("gated norm", ops::RunGatedNorm, gate, {y[0], zxbcdt}, norm);
  Both("gated norm grad", ops::RunGatedNormGrad, gate, {dy, y[0], zxbcdt, yn[1]}, norm, norm);
}

TEST_P(Gpu, CausalAttention) {
  const int64_t q = 4, kv = 2, d = 128, S = 300, B = 2;
  const Attributes attributes = {{"q_heads", q}, {"kv_heads", kv}, {"head_dim", d}};
  const at::Tensor qkv = Random({S, B, (q + 2 * kv) * d}), da = Random({S, B, q * d});
  const at::Tensor rounded = qkv.to(GetParam());
  const Tensors out = Both("attention", ops::RunCausalAttention, attributes, {qkv});
  // The lse of the GPU itself: rounded to bf16 it would scale whole rows.
  Op op(attributes);
  const Tensors gpu = op.Run(ops::RunCausalAttention, {rounded.to(at::kCUDA)});
  const at::Tensor gradient =
      op.Run(ops::RunCausalAttentionGrad, {da.to(GetParam()).to(at::kCUDA), rounded.to(at::kCUDA), gpu[0], gpu[1]})[0];
  const at::Tensor exact = op.Run(ops::RunCausalAttentionGrad,
                                  {da.to(GetParam()).to(at::kDouble), rounded.to(at::kDouble), out[0], out[1]})[0];
  EXPECT_LE(NormGap(gradient, exact), Tolerance());
}

// With cp, with packed documents, and with both: the flash kernel gets chunks with longer keys, and documents.
TEST_P(Gpu, CausalAttentionOfParts) {
  const int64_t q = 4, kv = 2, d = 128, T = 512;
  const at::Tensor ends =
      at::tensor({int64_t{1}, int64_t{90}, int64_t{100}, int64_t{260}, int64_t{384}, int64_t{400}, T});
  for (const int64_t cp : {1, 2}) {
    for (const bool packed : {false, true}) {
      if (cp == 1 && !packed) continue;
      SCOPED_TRACE(cp);
      Attributes attributes = {{"q_heads", q}, {"kv_heads", kv}, {"head_dim", d}};
      if (cp > 1) attributes.insert({{"cp", cp}, {"zigzag", int64_t{1}}});
      const int64_t S = T / cp, B = packed ? 1 : 2;
      const at::Tensor da = Random({S, B, q * d}).to(GetParam());
      const Tensors heads = cp > 1 ? Tensors{Random({S, B, q * d}), Random({T, B, 2 * kv * d})}
                                   : Tensors{Random({S, B, (q + 2 * kv) * d})};
      for (int r = 0; r < cp; ++r) {
        Op op(attributes);
        op.OnCpRank(r, static_cast<int>(cp));
        const auto run = [&](const auto& moved) {  // forward and gradients
          Tensors inputs;
          for (const at::Tensor& x : heads) inputs.push_back(moved(x.to(GetParam())));
          Tensors forward = inputs, backward = {moved(da)};
          if (packed) forward.push_back(ends);
          const Tensors out = op.Run(ops::RunCausalAttention, forward);
          backward.insert(backward.end(), inputs.begin(), inputs.end());
          backward.insert(backward.end(), out.begin(), out.end());
          if (packed) backward.push_back(ends);
          Tensors all = op.Run(ops::RunCausalAttentionGrad, backward);
          all.insert(all.end(), out.begin(), out.end());
          return all;
        };
        const Tensors exact = run([](const at::Tensor& x) { return x.to(at::kDouble); });
        const Tensors actual = run([](const at::Tensor& x) { return x.to(at::kCUDA); });
        ASSERT_EQ(actual.size(), exact.size());
        for (size_t i = 0; i < exact.size(); ++i) EXPECT_LE(NormGap(actual[i], exact[i]), Tolerance()) << i;
      }
    }
  }
}

// The kernels read one key head of several, in place.
TEST_P(Gpu, CausalAttentionAllKv) {
  const int64_t q = 4, kv = 2, d = 128, T = 512;
  for (const int64_t cp : {1, 2}) {
    SCOPED_TRACE(cp);
    Attributes attributes = {{"q_heads", q}, {"kv_heads", kv}, {"head_dim", d}};
    if (cp > 1) attributes.insert({{"cp", cp}, {"zigzag", int64_t{1}}});
    const int64_t S = T / cp, B = 2;
    const Tensors heads = {Random({S, B, q * d}), Random({T, B, 2 * kv * d})};
    const at::Tensor da = Random({S, B, q * d}).to(GetParam());
    for (int rank = 0; rank < 4; ++rank) {
      Op op(attributes);
      op.OnTpRank(rank, 4).OnCpRank(0, static_cast<int>(cp));
      const auto run = [&](const auto& moved) {
        Tensors inputs;
        for (const at::Tensor& x : heads) inputs.push_back(moved(x.to(GetParam())));
        const Tensors out = op.Run(ops::RunCausalAttentionAllKv, inputs);
        Tensors all = op.Run(ops::RunCausalAttentionAllKvGrad, {moved(da), inputs[0], inputs[1], out[0], out[1]});
        all.insert(all.end(), out.begin(), out.end());
        return all;
      };
      const Tensors exact = run([](const at::Tensor& x) { return x.to(at::kDouble); });
      const Tensors actual = run([](const at::Tensor& x) { return x.to(at::kCUDA); });
      ASSERT_EQ(actual.size(), exact.size());
      for (size_t i = 0; i < exact.size(); ++i) EXPECT_LE(NormGap(actual[i], exact[i]), Tolerance()) << i;
    }
  }
}

TEST_P(Gpu, PackedMixer) {
  const int64_t heads = 4, groups = 2, p = 16, n = 16, inner = heads * p, bc = groups * n, S = 200;
  const Attributes scan = {{"inner", inner},   {"bc", bc},   {"heads", heads},
                           {"groups", groups}, {"state", n}, {"chunk", int64_t{64}}};
  const at::Tensor ends = at::tensor({int64_t{30}, int64_t{64}, int64_t{65}, int64_t{70}, int64_t{180}, S});
  const at::Tensor zxbcdt = Random({S, 1, 2 * inner + 2 * bc + heads}), dy = Random({S, 1, inner});
  const Tensors conv = {Random({inner + 2 * bc, 1, 4}), Random({inner + 2 * bc})},
                head = {Random({heads}), Random({heads}), Random({heads})};
  const at::Tensor xbc = Both("conv", ops::RunMambaConv, scan, {zxbcdt, ends}, conv, {}, {1})[0];
  Both("conv grad", ops::RunMambaConvGrad, scan, {Random({S, 1, inner + 2 * bc}), zxbcdt, ends}, conv, conv, {2});
  const Tensors y = Both("scan", ops::RunMambaScan, scan, {xbc, zxbcdt, ends}, head, {}, {2});
  if (GetParam() == at::kDouble)
    Both("scan grad", ops::RunMambaScanGrad, scan, {dy, xbc, zxbcdt, y[1], ends}, head, head, {4});
}

TEST_P(Gpu, Experts) {
  const int64_t L = 3, H = 32, ffn = 48;
  const at::Tensor counts = at::tensor({20, 0, 30, 10, 0, 40}, at::kLong).view({2, 3});  // no row goes to expert 1
  const at::Tensor rows = Random({100, H}), weights = Random({100}), dout = Random({100, H});
  const Tensors matrices = {Random({L, ffn, H}), Random({L, H, ffn})};
  const Tensors out = Both("experts", ops::RunExperts, {}, {rows, weights, counts}, matrices, {}, {2});
  Both("experts grad", ops::RunExpertsGrad, {}, {dout, rows, weights, out[1], counts}, matrices, matrices, {4});
  // With one source the counts stay on the device. Widths that do not fill a tile; runs shorter and longer than a tile.
  for (const int64_t width : {int64_t{48}, int64_t{37}, int64_t{130}}) {
    const at::Tensor few = at::tensor({70, 0, 30}, at::kLong);
    const Tensors own = {Random({L, width, H}), Random({L, H, width})};
    const Tensors made = Both("experts of one rank", ops::RunExperts, {}, {rows, weights, few}, own);
    Both("experts grad of one rank", ops::RunExpertsGrad, {}, {dout, rows, weights, made[1], few}, own, own);
  }
  const at::Tensor none = at::zeros({2, 3}, at::kLong);
  Both("no rows", ops::RunExperts, {}, {rows.narrow(0, 0, 0), weights.narrow(0, 0, 0), none}, matrices, {}, {2});
  Both("no rows on one rank", ops::RunExperts, {}, {rows.narrow(0, 0, 0), weights.narrow(0, 0, 0), none[0]}, matrices);
}

TEST_P(Gpu, Dispatch) {
  const int64_t s = 10, B = 2, k = 3, H = 16, E = 8;
  const Attributes rows_of = {{"top_k", k}, {"sequence", s}, {"samples", B}};
  const Attributes route = {{"top_k", k}, {"scale", 2.5}, {"sequence", s}, {"aux_scale", 0.5}};
  const at::Tensor n = Random({s, B, H}), ids = at::arange(s * B * k, at::kLong).mul(5).remainder(E).view({s * B, k});
  const Tensors gate = {Random({E, H}), Random({E})};
  if (GetParam() == at::kDouble) {  // rounded scores may tie
    const Tensors out = Both("route", ops::RunRoute, route, {n}, gate);
    Both("aux", ops::RunSequenceAuxLoss, route, {out[3], out[4]});
    Both("route grad", ops::RunRouteGrad, route, {Random({s * B, k}), n, out[0], out[1], out[5], out[4]}, {gate[0]},
         {gate[0]});
    for (const int64_t choices : {int64_t{1}, k, E}) {
      for (const int64_t normalized : {0, 1}) {
        Attributes rule = route;
        rule["top_k"] = choices, rule["normalized"] = normalized;
        const Tensors made = Both("route by a rule", ops::RunRoute, rule, {n}, gate);
        Both("route grad by a rule", ops::RunRouteGrad, rule,
             {Random({s * B, choices}), n, made[0], made[1], made[5], made[4]}, {gate[0]}, {gate[0]});
      }
    }
  }
  Both("fingerprint", ops::RunRoutingFingerprint, {{"sequence", s}}, {ids});
  const Tensors rows = Both("permute", ops::RunPermuteRows, {}, {n, Random({s * B, k}), ids});
  Both("permute grad", ops::RunPermuteRowsGrad, rows_of, {Random({s * B * k, H}), Random({s * B * k}), rows[2]});
  Both("unpermute", ops::RunUnpermuteRows, rows_of, {Random({s * B * k, H}), rows[2]});
  Both("unpermute grad", ops::RunUnpermuteRowsGrad, rows_of, {n, rows[2]});
  // Gathered tokens, on the first of one rank: a rank of several is in tests/executor/kernels.
  const at::Tensor counts = at::bincount(ids.view({-1}), {}, E).view({1, E});
  const Tensors here = Both("select", ops::RunSelectRows, {}, {n, Random({s * B, k}), ids, counts}, {}, {}, {3});
  Both("select grad", ops::RunSelectRowsGrad, rows_of, {Random({s * B * k, H}), Random({s * B * k}), here[2]});
  Both("combine", ops::RunCombineRows, rows_of, {Random({s * B * k, H}), here[2]});
  Both("combine grad", ops::RunCombineRowsGrad, rows_of, {n, here[2]});
}

TEST_P(Gpu, Decoder) {
  const int64_t S = 20, B = 2, q = 4, k = 2, d = 16, width = 40;
  Attributes heads = {{"q_heads", q}, {"k_heads", k},         {"v_heads", k}, {"head_dim", d},
                      {"eps", 1e-5},  {"rotary", int64_t{8}}, {"theta", 1e4}};
  const at::Tensor qkv = Random({S, B, (q + 2 * k) * d}), dqkv = Random({S, B, (q + 2 * k) * d}),
                   positions = at::randint(131073, {1, S, B}, at::kLong);
  const Tensors weights = {Random({d}), Random({d})};
  Both("rope", ops::RunRope, heads, {qkv, positions});
  Both("rope grad", ops::RunRopeGrad, heads, {dqkv, positions});
  heads.insert({{"scaling", int64_t{2}}, {"factor", 8.0}, {"original", 8192.0}, {"low", 1.0}, {"high", 4.0}});
  Both("rope of llama3", ops::RunRope, heads, {qkv, positions});
  const Tensors norm = Both("head norm", ops::RunHeadNorm, heads, {qkv}, weights);
  Both("head norm grad", ops::RunHeadNormGrad, heads, {dqkv, qkv, norm[1]}, weights, weights);
  const at::Tensor gu = Random({S, B, 2 * width}), dh = Random({S, B, width});
  Both("gate", ops::RunGatedSilu, {{"width", width}}, {gu});
  Both("gate grad", ops::RunGatedSiluGrad, {{"width", width}}, {dh, gu});
}

TEST_P(Gpu, GatedExperts) {
  const int64_t L = 3, H = 32, E = 8, s = 10, B = 2;
  for (const int64_t width : {int64_t{48}, int64_t{37}}) {
    const Attributes ffn = {{"ffn", width}};
    const at::Tensor rows = Random({100, H}), weights = Random({100}), dout = Random({100, H}),
                     few = at::tensor({70, 0, 30}, at::kLong),
                     sources = at::tensor({20, 0, 30, 10, 0, 40}, at::kLong).view({2, 3});
    const Tensors matrices = {Random({L, 2 * width, H}), Random({L, H, width})};
    for (const at::Tensor& counts : {few, sources}) {
      const bool host = counts.dim() == 2;
      const auto at_place = [&](size_t place) { return host ? std::set<size_t>{place} : std::set<size_t>{}; };
      const Tensors out =
          Both("experts", ops::RunGatedExperts, ffn, {rows, weights, counts}, matrices, {}, at_place(2));
      Both("experts grad", ops::RunGatedExpertsGrad, ffn, {dout, rows, weights, out[1], counts}, matrices, matrices,
           at_place(4));
    }
  }
  if (GetParam() != at::kDouble) return;  // rounded scores may tie
  const at::Tensor n = Random({s, B, H});
  const Tensors gate = {Random({E, H})};
  for (const int64_t choices : {int64_t{1}, int64_t{3}, E}) {
    for (const int64_t normalized : {0, 1}) {
      const Attributes rule = {{"top_k", choices}, {"normalized", normalized}, {"sequence", s}, {"aux_scale", 0.5}};
      const Tensors made = Both("route", ops::RunRouteSoftmax, rule, {n}, gate);
      Both("route grad", ops::RunRouteSoftmaxGrad, rule, {Random({s * B, choices}), n, made[1], made[5], made[4]}, gate,
           gate);
    }
  }
}

TEST_P(Gpu, EmbeddingAndLoss) {
  const int64_t S = 40, B = 2, H = 16, V = 24;
  const Attributes image = {{"image_token", int64_t{5}}};
  const at::Tensor x = Random({S, B, H}), tokens = at::randint(V, {B, S}, at::kLong);
  const int64_t images = (tokens == 5).sum().item<int64_t>();
  const Tensors table = {Random({V, H})};
  Both("embed", ops::RunEmbedTokens, image, {tokens}, table);
  Both("embed grad", ops::RunEmbedTokensGrad, image, {x, tokens}, {}, table);
  const at::Tensor positions = Both("merge", ops::RunMergeImages, image, {x, Random({images, H}), tokens})[1];
  Both("merge grad", ops::RunMergeImagesGrad, image, {x, positions});
  const at::Tensor logits = Random({S, B, V}), mask = (tokens != 5).to(at::kDouble);
  const Tensors parts = Both("parts", ops::RunCrossEntropyParts, {}, {logits, tokens});
  const at::Tensor m = parts[0], sums = Both("sums", ops::RunCrossEntropySums, {}, {parts[1], m})[0];
  Both("loss", ops::RunTokenLoss, {}, {sums, mask});
  Both("loss grad", ops::RunCrossEntropyGrad, {}, {logits, m, sums, tokens, mask});
}

TEST_P(Gpu, LinearsAndNorms) {
  const at::Tensor x = Random({30, 2, 32}), dy = Random({30, 2, 48});
  const Tensors weight = {Random({48, 32}), Random({48})}, norm = {Random({32}), Random({32})};
  const Attributes eps = {{"eps", 1e-5}}, erf = {{"erf", int64_t{1}}};
  Both("linear", ops::RunLinear, {}, {x}, weight);
  Both("input grad", ops::RunLinearInputGrad, {}, {dy}, weight);
  Both("weight grad", ops::RunLinearWeightGrad, {}, {dy, x}, {}, weight);
  Both("bias grad", ops::RunBiasGrad, {}, {dy}, {}, {weight[1]});
  const Tensors rms = Both("rms norm", ops::RunRmsNorm, eps, {x}, norm);
  Both("rms norm grad", ops::RunRmsNormGrad, {}, {x, x, rms[1]}, norm, {norm[0]});
  const Tensors squared = Both("squared relu", ops::RunSquaredRelu, {}, {x}),
                gelu = Both("gelu", ops::RunGelu, {}, {x});
  Both("squared relu grad", ops::RunSquaredReluGrad, {}, {x, squared[0]});
  Both("gelu grad", ops::RunGeluGrad, {}, {x, gelu[0]});
  const Tensors exact = Both("gelu by erf", ops::RunGelu, erf, {x});
  Both("gelu by erf grad", ops::RunGeluGrad, erf, {x, exact[0]});
  Both("add", ops::RunAdd, {}, {x, x, x});
  if (GetParam() != at::kDouble) return;  // bf16 keeps fp32 statistics, which this harness would round
  const Tensors layer = Both("layer norm", ops::RunLayerNorm, eps, {x}, norm);
  Both("layer norm grad", ops::RunLayerNormGrad, {}, {x, x, layer[1], layer[2]}, norm, norm);
}

INSTANTIATE_TEST_SUITE_P(Precisions, Gpu, testing::Values(at::kDouble, at::kBFloat16),
                         [](const auto& type) { return type.param == at::kDouble ? "Fp64" : "Bf16"; });

}  // namespace
}  // namespace planwright::executor
