// The Mamba mixer against the recursion position by position, and attention against a dense softmax.
#include <ATen/ops/cat.h>

#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"

namespace planwright::executor {
namespace {

using reference::MambaSizes;

// One mixer: its inputs, its parameters and the gradient of its output.
struct Mixer {
  MambaSizes z{.heads = 4, .groups = 2, .head_dim = 3, .state = 5};
  at::Tensor zxbcdt, conv_weight, conv_bias, A_log, D, dt_bias, norm, dyn;

  Mixer(int64_t positions, int64_t samples)
      : zxbcdt(Random({positions, samples, 2 * z.inner() + 2 * z.bc() + z.heads})),
        conv_weight(Random({z.inner() + 2 * z.bc(), 1, 4})), conv_bias(Random({z.inner() + 2 * z.bc()})),
        A_log(Random({z.heads})), D(Random({z.heads})), dt_bias(Random({z.heads})), norm(Random({z.inner()})),
        dyn(Random({positions, samples, z.inner()})) {}

  Attributes conv() const { return {{"inner", z.inner()}, {"bc", z.bc()}, {"heads", z.heads}}; }
  Attributes scan(int64_t chunk) const {
    return {{"inner", z.inner()}, {"bc", z.bc()},     {"heads", z.heads},
            {"groups", z.groups}, {"state", z.state}, {"chunk", chunk}};
  }
  Attributes gate() const { return {{"inner", z.inner()}, {"group_size", z.inner() / z.groups}, {"eps", 1e-5}}; }
  Tensors parameters() const { return {conv_weight, conv_bias, A_log, D, dt_bias, norm}; }
};

struct Result {
  at::Tensor yn, states, dzxbcdt;
  Tensors gradients;  // of Mixer::parameters()
};

// The handlers in the order in which the plan calls them.
Result RunMixer(const Mixer& m, int64_t chunk) {
  const at::Tensor xbc = Op(m.conv()).Run(ops::RunMambaConv, {m.zxbcdt}, {m.conv_weight, m.conv_bias})[0];
  const Tensors scan = Op(m.scan(chunk)).Run(ops::RunMambaScan, {xbc, m.zxbcdt}, {m.A_log, m.D, m.dt_bias});
  const Tensors gated = Op(m.gate()).Run(ops::RunGatedNorm, {scan[0], m.zxbcdt}, {m.norm});

  Tensors g = FilledGradients(m.parameters());
  const Tensors dgated =
      Op(m.gate()).Run(ops::RunGatedNormGrad, {m.dyn, scan[0], m.zxbcdt, gated[1]}, {m.norm}, {g[5]});
  const Tensors dscan = Op(m.scan(chunk))
                            .Run(ops::RunMambaScanGrad, {dgated[0], xbc, m.zxbcdt, scan[1]}, {m.A_log, m.D, m.dt_bias},
                                 {g[2], g[3], g[4]});
  const Tensors dconv =
      Op(m.conv()).Run(ops::RunMambaConvGrad, {dscan[0], m.zxbcdt}, {m.conv_weight, m.conv_bias}, {g[0], g[1]});
  for (at::Tensor& gradient : g) gradient = Added(gradient);
  return {gated[0], scan[1], at::cat({dgated[1], dconv[0], dscan[1]}, 2), g};
}

Result Reference(const Mixer& m) {
  Mixer leaf = m;
  leaf.zxbcdt = Leaf(m.zxbcdt);
  for (at::Tensor* x : {&leaf.conv_weight, &leaf.conv_bias, &leaf.A_log, &leaf.D, &leaf.dt_bias, &leaf.norm})
    *x = Leaf(*x);
  const at::Tensor xbc = reference::MambaConv(m.z, leaf.zxbcdt, leaf.conv_weight, leaf.conv_bias);
  const at::Tensor y = reference::MambaScan(m.z, xbc, leaf.zxbcdt, leaf.A_log, leaf.D, leaf.dt_bias);
  const at::Tensor yn = reference::GatedNorm(m.z, y, leaf.zxbcdt, leaf.norm, 1e-5);
  (yn * m.dyn).sum().backward();
  Result result{yn.detach(), {}, leaf.zxbcdt.grad(), {}};
  for (const at::Tensor& parameter : leaf.parameters()) result.gradients.push_back(parameter.grad());
  return result;
}

void ExpectSame(const Result& actual, const Result& expected) {
  EXPECT_SAME(actual.yn, expected.yn);
  EXPECT_SAME(actual.dzxbcdt, expected.dzxbcdt);
  for (size_t i = 0; i < actual.gradients.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_SAME(actual.gradients[i], expected.gradients[i]);
  }
}

TEST(Mamba, ChunksMeetTheRecursion) {
  const Mixer mixer(32, 2);
  ExpectSame(RunMixer(mixer, 8), Reference(mixer));
}

TEST(Mamba, LastChunkMayBeShort) {
  const Mixer mixer(37, 2);
  const Result result = RunMixer(mixer, 8);
  ExpectSame(result, Reference(mixer));
  EXPECT_EQ(result.states.sizes(), at::IntArrayRef({5, 2, 4, 3, 5}));  // ceil(S / chunk), B, heads, head_dim, state
}

TEST(Mamba, OneChunkMayBeLongerThanTheSequence) {
  const Mixer mixer(3, 1);  // shorter than the convolution too
  ExpectSame(RunMixer(mixer, 128), Reference(mixer));
}

TEST(Mamba, StrongDecayDoesNotOverflow) {
  Mixer mixer(150, 1);
  mixer.A_log.fill_(4);
  mixer.dt_bias.fill_(
      -2);  // about -8 for each position: without the mask, exp(1000) would appear between the ends of a chunk
  ExpectSame(RunMixer(mixer, 128), Reference(mixer));
}

Mixer As(Mixer mixer, at::ScalarType values, at::ScalarType parameters) {
  for (at::Tensor* x : {&mixer.zxbcdt, &mixer.dyn}) *x = x->to(values);
  for (at::Tensor* x : {&mixer.conv_weight, &mixer.conv_bias, &mixer.A_log, &mixer.D, &mixer.dt_bias, &mixer.norm})
    *x = x->to(parameters);
  return mixer;
}

TEST(Mamba, Fp32AndBf16StayNearFp64) {
  // rounded, as the kernel gets them
  const Mixer mixer = As(As(Mixer(40, 1), at::kBFloat16, at::kFloat), at::kDouble, at::kDouble);
  const Result exact = RunMixer(mixer, 16), fp32 = RunMixer(As(mixer, at::kFloat, at::kFloat), 16);
  EXPECT_LT(Gap(fp32.yn, exact.yn), 1e-5);
  EXPECT_LT(Gap(fp32.dzxbcdt, exact.dzxbcdt), 1e-5);

  const Result bf16 = RunMixer(As(mixer, at::kBFloat16, at::kFloat), 16);
  EXPECT_EQ(bf16.yn.scalar_type(), at::kBFloat16);
  EXPECT_EQ(bf16.states.scalar_type(), at::kFloat);
  // One rounding to bf16 is 0.004 at most; xbc, y and their gradients are rounded on the way.
  EXPECT_LT(NormGap(bf16.yn, exact.yn), 0.02);
  EXPECT_LT(NormGap(bf16.dzxbcdt, exact.dzxbcdt), 0.04);
}

struct Attention {
  at::Tensor a, lse, dqkv;
};

Attention RunAttention(const at::Tensor& qkv, const at::Tensor& da, int64_t q, int64_t kv, int64_t d) {
  Op op({{"q_heads", q}, {"kv_heads", kv}, {"head_dim", d}});
  const Tensors out = op.Run(ops::RunCausalAttention, {qkv});
  return {out[0], out[1], op.Run(ops::RunCausalAttentionGrad, {da, qkv, out[0], out[1]})[0]};
}

TEST(CausalAttention, StripsMeetDenseSoftmax) {
  // two strips, the second short
  const at::Tensor qkv = Leaf(Random({300, 2, 8 * 4}) * 2), da = Random({300, 2, 4 * 4});
  const at::Tensor a = reference::CausalAttention(qkv, 4, 2, 4);
  (a * da).sum().backward();
  const Attention out = RunAttention(qkv.detach(), da, 4, 2, 4);
  EXPECT_SAME(out.a, a);
  EXPECT_EQ(out.lse.sizes(), at::IntArrayRef({2, 4, 300}));
  EXPECT_SAME(out.dqkv, qkv.grad());
}

// 8 query heads with 2 key heads, on as many ranks as heads at most: each rank's queries meet the key head that they
// have in the whole. The gradients of keys are terms, and 0 for the other head.
TEST(CausalAttention, RanksShareKeyHeads) {
  const int64_t q = 8, kv = 2, d = 3, positions = 20;
  const at::Tensor qkv = Random({positions, 2, (q + 2 * kv) * d}), da = Random({positions, 2, q * d});
  const Attention whole = RunAttention(qkv, da, q, kv, d);
  const at::Tensor queries = qkv.narrow(2, 0, q * d), keys = qkv.narrow(2, q * d, 2 * kv * d);
  for (const int tp : {2, 4, 8}) {
    SCOPED_TRACE(tp);
    const int64_t own = q / tp * d;
    at::Tensor dkv;
    for (int rank = 0; rank < tp; ++rank) {
      Op op({{"q_heads", q / tp}, {"kv_heads", kv}, {"head_dim", d}});
      op.OnTpRank(rank, tp);
      const auto part = [&](const at::Tensor& x) { return x.narrow(2, rank * own, own); };
      const Tensors out = op.Run(ops::RunCausalAttentionAllKv, {part(queries), keys});
      EXPECT_SAME(out[0], part(whole.a));
      const Tensors d_own = op.Run(ops::RunCausalAttentionAllKvGrad, {part(da), part(queries), keys, out[0], out[1]});
      EXPECT_SAME(d_own[0], part(whole.dqkv));
      const int64_t other = rank < tp / 2 ? 1 : 0;
      EXPECT_EQ(d_own[1].view({positions, 2, 2, kv, d}).select(3, other).count_nonzero().item<int64_t>(), 0);
      dkv = dkv.defined() ? dkv + d_own[1] : d_own[1];
    }
    EXPECT_SAME(dkv, whole.dqkv.narrow(2, q * d, 2 * kv * d));
  }
  // Ranks share whole heads only.
  Op three({{"q_heads", int64_t{4}}, {"kv_heads", kv}, {"head_dim", d}});
  three.OnTpRank(1, 3);
  EXPECT_THROW(three.Run(ops::RunCausalAttentionAllKv, {queries.narrow(2, 0, 4 * d), keys}), c10::Error);
}

TEST(CausalAttention, PastIsAllThatCounts) {
  const at::Tensor qkv = Random({6, 1, 4 * 3}), da = Random({6, 1, 2 * 3});
  const Attention whole = RunAttention(qkv, da, 2, 1, 3),
                  first = RunAttention(qkv.narrow(0, 0, 4), da.narrow(0, 0, 4), 2, 1, 3);
  EXPECT_SAME(first.a, whole.a.narrow(0, 0, 4));
}

}  // namespace
}  // namespace planwright::executor
