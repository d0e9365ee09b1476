// What decoders have of their own: the rows of Qwen3-1.7B, its head and loss, and a layer of experts of Qwen3-30B-A3B.
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <string>

#include "tests/executor/ops/run_joined.h"
#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kTokens = 8192, kHidden = 2048, kMlp = 6144, kHeadDim = 128, kQ = 16, kKv = 8;
constexpr int64_t kFeatures = (kQ + 2 * kKv) * kHeadDim, kVocabulary = 151936;
constexpr int64_t kExperts = 128, kTopK = 8, kFfn = 768, kRows = kTokens * kTopK;

at::TensorOptions Gpu(at::ScalarType type) { return at::TensorOptions(at::kCUDA).dtype(type); }
at::Tensor Values(at::IntArrayRef shape) { return at::randn(shape, Gpu(at::kBFloat16)); }
at::Tensor Weights(at::IntArrayRef shape) { return Values(shape).mul_(0.02); }

// The plain forms, which fast forms are compared with: a function of its own is run as it is.
Tensors PlainExperts(const ComputeContext& context) { return ops::RunGatedExperts(context); }
Tensors PlainExpertsGrad(const ComputeContext& context) { return ops::RunGatedExpertsGrad(context); }

double Bytes(int64_t values) { return 2.0 * static_cast<double>(values); }

void AddRowCases(std::vector<KernelCase>& cases) {
  const Attributes heads = {{"q_heads", kQ},      {"k_heads", kKv}, {"v_heads", kKv}, {"head_dim", kHeadDim},
                            {"rotary", kHeadDim}, {"theta", 1e6},   {"eps", 1e-6}},
                   gate = {{"width", kMlp}};
  const at::Tensor qkv = Values({kTokens, 1, kFeatures}), dqkv = Values({kTokens, 1, kFeatures}),
                   gu = Values({kTokens, 1, 2 * kMlp}), dh = Values({kTokens, 1, kMlp}),
                   positions = at::arange(kTokens, Gpu(at::kLong)).view({1, kTokens, 1});
  const Tensors weights = {Values({kHeadDim}), Values({kHeadDim})};
  const at::Tensor scale = Op(heads).Run(ops::RunHeadNorm, {qkv}, weights)[1];
  const double rows = Bytes(qkv.numel()), gates = Bytes(gu.numel());
  cases.push_back(CaseOf("rope", 2 * rows, 0, {ops::RunRope, heads, {qkv, positions}}));
  cases.push_back(CaseOf("rope_grad", 2 * rows, 0, {ops::RunRopeGrad, heads, {dqkv, positions}}));
  cases.push_back(CaseOf("head_norm", 2 * rows, 0, {ops::RunHeadNorm, heads, {qkv}, weights}));
  cases.push_back(CaseOf("head_norm_grad", 3 * rows, 0,
                         {ops::RunHeadNormGrad, heads, {dqkv, qkv, scale}, weights, GradientsOf(weights)}));
  constexpr Handler kNormAndRope = RunJoined<OpKind::kHeadNorm, OpKind::kRope, OfFirst{.inputs = 1, .parameters = 2}>,
                    kGradients = RunJoined<OpKind::kRopeGrad, OpKind::kHeadNormGrad, OfFirst{.inputs = 2}>;
  const Tensors sums = GradientsOf(weights);
  const double passing = static_cast<double>(kKv) / (kQ + 2 * kKv);
  cases.push_back(CaseOf("head_norm and rope", 2 * rows, 0, {kNormAndRope, heads, {qkv, positions}, weights}));
  cases.push_back(CaseOf("rope_grad and head_norm_grad", (3 - passing) * rows, 0,
                         {kGradients, heads, {dqkv, positions, qkv, scale}, weights, sums}));
  cases.push_back({.name = "rope_grad and head_norm_grad in place", .bytes = 3 * (1 - passing) * rows, .run = [=] {
                     Op(heads).Overwriting().Run(kGradients, {dqkv, positions, qkv, scale}, weights, sums);
                   }});
  cases.push_back(CaseOf("gated_silu", 1.5 * gates, 0, {ops::RunGatedSilu, gate, {gu}}));
  cases.push_back(CaseOf("gated_silu_grad", 2.5 * gates, 0, {ops::RunGatedSiluGrad, gate, {dh, gu}}));
}

void AddLinear(std::vector<KernelCase>& cases, const std::string& name, int64_t in, int64_t out, bool biased = false) {
  const at::Tensor x = Values({kTokens, 1, in}), dy = Values({kTokens, 1, out});
  Tensors weights = {Weights({out, in})};
  if (biased) weights.push_back(Weights({out}));
  const double flops = 2.0 * kTokens * static_cast<double>(in) * static_cast<double>(out),
               bytes = Bytes(x.numel() + dy.numel() + weights[0].numel());
  cases.push_back(CaseOf("linear " + name, bytes, flops, {ops::RunLinear, {}, {x}, weights}));
  cases.push_back(CaseOf("linear_input_grad " + name, bytes, flops, {ops::RunLinearInputGrad, {}, {dy}, {weights[0]}}));
  cases.push_back(CaseOf("linear_weight_grad " + name, bytes, flops,
                         {ops::RunLinearWeightGrad, {}, {dy, x}, {}, GradientsOf(weights)}));
}

void AddLossCases(std::vector<KernelCase>& cases) {
  const at::Tensor logits = Values({kTokens, 1, kVocabulary}),
                   labels = at::randint(kVocabulary, {1, kTokens}, Gpu(at::kLong)),
                   mask = at::ones_like(labels).to(at::kFloat);
  const Tensors parts = Op().Run(ops::RunCrossEntropyParts, {logits, labels});
  const at::Tensor sums = Op().Run(ops::RunCrossEntropySums, {parts[1], parts[0]})[0];
  const double bytes = Bytes(logits.numel());
  cases.push_back(CaseOf("cross_entropy_parts of 151936", bytes, 0, {ops::RunCrossEntropyParts, {}, {logits, labels}}));
  cases.push_back({.name = "cross_entropy_grad of 151936", .bytes = 2 * bytes, .run = [=] {
                     Op().Overwriting().Run(ops::RunCrossEntropyGrad, {logits, parts[0], sums, labels, mask});
                   }});
}

void AddExpertCases(std::vector<KernelCase>& cases) {
  const Attributes route = {{"top_k", kTopK}, {"normalized", int64_t{1}}, {"sequence", kTokens}, {"aux_scale", 1.0}},
                   ffn = {{"ffn", kFfn}};
  const at::Tensor n = Values({kTokens, 1, kHidden}), dweights = at::randn({kTokens, kTopK}, Gpu(at::kFloat));
  const Tensors gate = {Weights({kExperts, kHidden})};
  const Tensors routed = Op(route).Run(ops::RunRouteSoftmax, {n}, gate);
  const double tokens = Bytes(n.numel()), scores = 4.0 * kTokens * kExperts,
               product = 2.0 * kTokens * kHidden * kExperts;
  cases.push_back(CaseOf("route_softmax", tokens + 2 * scores, product, {ops::RunRouteSoftmax, route, {n}, gate}));
  cases.push_back(CaseOf(
      "route_softmax_grad", 2 * tokens + scores, 2 * product,
      {ops::RunRouteSoftmaxGrad, route, {dweights, n, routed[1], routed[5], routed[4]}, gate, GradientsOf(gate)}));

  const at::Tensor rows = Values({kRows, kHidden}), dout = Values({kRows, kHidden}),
                   weights = at::randn({kRows}, Gpu(at::kFloat)),
                   counts = at::bincount(routed[1].view({-1}), {}, kExperts);
  const Tensors matrices = {Weights({kExperts, 2 * kFfn, kHidden}), Weights({kExperts, kHidden, kFfn})};
  const at::Tensor pre = Op(ffn).Run(ops::RunGatedExperts, {rows, weights, counts}, matrices)[1];
  const double moved = 2 * Bytes(rows.numel()) + Bytes(pre.numel()),
               read = Bytes(matrices[0].numel() + matrices[1].numel()), flops = 6.0 * kRows * kHidden * kFfn;
  const Tensors forward = {rows, weights, counts}, backward = {dout, rows, weights, pre, counts};
  const Tensors sums = GradientsOf(matrices);
  for (const bool fast : {true, false}) {
    const std::string form = fast ? "" : ", plain";
    cases.push_back(CaseOf("gated_experts" + form, moved + read, flops,
                           {fast ? ops::RunGatedExperts : PlainExperts, ffn, forward, matrices}));
    cases.push_back(CaseOf("gated_experts_grad" + form, moved + Bytes(rows.numel()) + 5 * read, 2 * flops,
                           {fast ? ops::RunGatedExpertsGrad : PlainExpertsGrad, ffn, backward, matrices, sums}));
  }
}

}  // namespace

std::vector<KernelCase> DecoderCases() {
  std::vector<KernelCase> cases;
  AddRowCases(cases);
  AddLinear(cases, "of 2048 to 4096", kHidden, kFeatures);
  AddLinear(cases, "with a bias", kHidden, kFeatures, true);
  AddLinear(cases, "of 2048 to 12288", kHidden, 2 * kMlp);
  AddLinear(cases, "of 6144 to 2048", kMlp, kHidden);
  AddLossCases(cases);
  AddExpertCases(cases);
  return cases;
}

}  // namespace planwright::executor
