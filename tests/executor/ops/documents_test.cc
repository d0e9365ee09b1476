// Mixer and attention where a sample packs documents: against the same operations on each document alone.
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor::documents_test {
namespace {

constexpr int64_t kHeads = 8, kGroups = 4, kHeadDim = 3, kState = 5, kInner = kHeads * kHeadDim, kBc = kGroups * kState;

// document_ends are the last input, if there are any.
Tensors With(Tensors inputs, const at::Tensor& ends) {
  if (ends.defined()) inputs.push_back(ends);
  return inputs;
}

struct Mixer {
  at::Tensor zxbcdt, dyn;
  Tensors parameters;  // conv weight, conv bias, A_log, D, dt_bias, norm
  explicit Mixer(int64_t positions, int64_t samples)
      : zxbcdt(Random({positions, samples, 2 * kInner + 2 * kBc + kHeads})), dyn(Random({positions, samples, kInner})),
        parameters({Random({kInner + 2 * kBc, 1, 4}), Random({kInner + 2 * kBc}), Random({kHeads}), Random({kHeads}),
                    Random({kHeads}), Random({kInner})}) {}
};

struct MixerResult {
  at::Tensor yn, dzxbcdt;
  Tensors gradients;
};

// The handlers in the order in which the plan calls them. `ends`: document_ends, if defined.
MixerResult RunMixer(const at::Tensor& zxbcdt, const at::Tensor& dyn, const Tensors& p, const at::Tensor& ends = {}) {
  const Attributes conv = {{"inner", kInner}, {"bc", kBc}, {"heads", kHeads}};
  const Attributes gate = {{"inner", kInner}, {"group_size", kInner / kGroups}, {"eps", 1e-5}};
  Attributes scan = conv;
  scan.insert({{"groups", kGroups}, {"state", kState}, {"chunk", int64_t{8}}});
  const auto run = [&](const Attributes& attributes, Handler handler, const Tensors& inputs, const Tensors& parameters,
                       const Tensors& gradients = {}) {
    return Op(attributes).Run(handler, inputs, parameters, gradients);
  };
  const at::Tensor xbc = run(conv, ops::RunMambaConv, With({zxbcdt}, ends), {p[0], p[1]})[0];
  const Tensors y = run(scan, ops::RunMambaScan, With({xbc, zxbcdt}, ends), {p[2], p[3], p[4]});
  const Tensors yn = run(gate, ops::RunGatedNorm, {y[0], zxbcdt}, {p[5]});
  Tensors g = FilledGradients(p);
  const Tensors dgate = run(gate, ops::RunGatedNormGrad, {dyn, y[0], zxbcdt, yn[1]}, {p[5]}, {g[5]});
  const Tensors dscan = run(scan, ops::RunMambaScanGrad, With({dgate[0], xbc, zxbcdt, y[1]}, ends), {p[2], p[3], p[4]},
                            {g[2], g[3], g[4]});
  const Tensors dconv = run(conv, ops::RunMambaConvGrad, With({dscan[0], zxbcdt}, ends), {p[0], p[1]}, {g[0], g[1]});
  for (at::Tensor& gradient : g) gradient = Added(gradient);
  return {yn[0], at::cat({dgate[1], dconv[0], dscan[1]}, 2), g};
}

// Each document alone, one after the other.
MixerResult EachDocument(const Mixer& m, const std::vector<int64_t>& ends) {
  Tensors yn, dzxbcdt, gradients;
  for (const at::Tensor& parameter : m.parameters) gradients.push_back(at::zeros_like(parameter));
  int64_t begin = 0;
  for (int64_t end : ends) {
    const MixerResult one =
        RunMixer(m.zxbcdt.narrow(0, begin, end - begin), m.dyn.narrow(0, begin, end - begin), m.parameters);
    yn.push_back(one.yn), dzxbcdt.push_back(one.dzxbcdt);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] += one.gradients[i];
    begin = end;
  }
  return {at::cat(yn), at::cat(dzxbcdt), gradients};
}

void ExpectSame(const MixerResult& actual, const MixerResult& expected) {
  EXPECT_SAME(actual.yn, expected.yn);
  EXPECT_SAME(actual.dzxbcdt, expected.dzxbcdt);
  for (size_t i = 0; i < expected.gradients.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_SAME(actual.gradients[i], expected.gradients[i]);
  }
}

// Documents that end at the end of a chunk of 8, inside one, several in one chunk, of one position, shorter than the
// convolution, and longer than two chunks.
const std::vector<std::vector<int64_t>> kPackings = {{37},          {8, 16, 37},        {5, 37},
                                                     {1, 2, 3, 37}, {20, 37},           {9, 10, 12, 15, 23, 37},
                                                     {36, 37},      {4, 7, 24, 32, 37}, {1, 30, 37}};

TEST(PackedMixer, IsEachDocumentAlone) {
  const Mixer m(37, 1);
  for (const std::vector<int64_t>& ends : kPackings) {
    SCOPED_TRACE(::testing::PrintToString(ends));
    ExpectSame(RunMixer(m.zxbcdt, m.dyn, m.parameters, at::tensor(ends, at::kLong)), EachDocument(m, ends));
  }
}

TEST(PackedMixer, EndsThatDoNotFitAreRefused) {
  const Mixer m(8, 1);
  for (const std::vector<int64_t>& ends : {std::vector<int64_t>{4}, {4, 4, 8}, {8, 9}, {0, 8}}) {
    EXPECT_THROW(RunMixer(m.zxbcdt, m.dyn, m.parameters, at::tensor(ends, at::kLong)), c10::Error);
  }
}

constexpr int64_t kQ = 4, kKv = 2, kD = 3;
const Attributes kAttention = {{"q_heads", kQ}, {"kv_heads", kKv}, {"head_dim", kD}};

struct Attention {
  at::Tensor a, lse, dqkv;
};

Attention RunAttention(const at::Tensor& qkv, const at::Tensor& da, const at::Tensor& ends = {}) {
  const Tensors out = Op(kAttention).Run(ops::RunCausalAttention, With({qkv}, ends));
  return {out[0], out[1], Op(kAttention).Run(ops::RunCausalAttentionGrad, With({da, qkv, out[0], out[1]}, ends))[0]};
}

TEST(PackedAttention, IsEachDocumentAlone) {
  const at::Tensor qkv = Random({37, 1, (kQ + 2 * kKv) * kD}), da = Random({37, 1, kQ * kD});
  for (const std::vector<int64_t>& ends : kPackings) {
    SCOPED_TRACE(::testing::PrintToString(ends));
    const Attention packed = RunAttention(qkv, da, at::tensor(ends, at::kLong));
    Tensors a, lse, dqkv;
    int64_t begin = 0;
    for (int64_t end : ends) {
      const Attention one = RunAttention(qkv.narrow(0, begin, end - begin), da.narrow(0, begin, end - begin));
      a.push_back(one.a), lse.push_back(one.lse), dqkv.push_back(one.dqkv);
      begin = end;
    }
    EXPECT_SAME(packed.a, at::cat(a));
    EXPECT_SAME(packed.lse, at::cat(lse, 2));
    EXPECT_SAME(packed.dqkv, at::cat(dqkv));
  }
}

}  // namespace
}  // namespace planwright::executor::documents_test
