// The norm of heads with the rotary embedding behind it, and the backward of both, each by one kernel
// (executor/ops/joined_forms.h). At real heads, at heads that fill no warp and no thread block, and where the two must
// run one after the other.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>

#include "tests/executor/kernels/check_kernel.h"
#include "tests/executor/ops/run_joined.h"

namespace planwright::executor {
namespace {

template <bool joined = true>
constexpr Handler kForward =
    RunJoined<OpKind::kHeadNorm, OpKind::kRope, OfFirst{.inputs = 1, .parameters = 2, .gradients = 2}, joined>;
template <bool joined = true>
constexpr Handler kBackward = RunJoined<OpKind::kRopeGrad, OpKind::kHeadNormGrad, OfFirst{.inputs = 2}, joined>;

struct TurnedHeads {
  int64_t q, k, v, head_dim, rotary;

  int64_t features() const { return (q + k + v) * head_dim; }
  Attributes attributes() const {
    return {{"q_heads", q}, {"k_heads", k}, {"v_heads", v},    {"head_dim", head_dim},
            {"eps", 1e-6},  {"theta", 1e6}, {"rotary", rotary}};
  }
  Tensors weights() const {
    Tensors all;
    for (const int64_t heads : {q, k}) {
      if (heads > 0) all.push_back(Random({head_dim}));
    }
    return all;
  }
};

class JoinedHeads : public Kernels {
 protected:
  // `joined`: whether the pairs have forms for these heads.
  template <bool joined = true>
  static void CheckBoth(const TurnedHeads& heads, int64_t positions, int64_t samples, const Attributes& scaling = {}) {
    SCOPED_TRACE(testing::Message() << positions * samples << " rows of " << heads.q << ", " << heads.k << ", "
                                    << heads.v << " heads of " << heads.head_dim << ", of which turn " << heads.rotary);
    Attributes attributes = heads.attributes();
    attributes.insert(scaling.begin(), scaling.end());
    const int64_t axes = scaling.contains("height") ? 3 : 1;
    const at::Tensor x = Random({positions, samples, heads.features()}),
                     dy = Random({positions, samples, heads.features()}),
                     at_position = at::randint(131073, {axes, positions, samples}, at::kLong);
    const Tensors weights = heads.weights();
    // One after the other, they round between the two.
    const Tolerances tolerances = joined ? Tolerances() : Tolerances{.narrow = 0.005, .gradients = 0.005};
    const Tensors out =
        Check("forward", kForward<joined>,
              {.attributes = attributes, .inputs = {x, at_position}, .parameters = weights, .tolerances = tolerances});
    KernelCheck backward = {.attributes = attributes,
                            .inputs = {dy, at_position, x, out[0].cpu().to(at::kDouble)},
                            .parameters = weights,
                            .wide_inputs = {3},
                            .tolerances = tolerances};
    Check("frozen", kBackward<joined>, backward);
    backward.gradients_like = weights;
    Check("backward", kBackward<joined>, backward);
  }

  // The same numbers, one element away from any alignment.
  static at::Tensor Shifted(const at::Tensor& x) {
    return at::cat({x.view({-1}).narrow(0, 0, 1), x.view({-1})}).narrow(0, 1, x.numel()).view(x.sizes());
  }
  static at::Tensor OnGpu(const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); }
};

TEST_F(JoinedHeads, OfRealModels) {
  CheckBoth({16, 8, 8, 128, 128}, 301, 1);
  CheckBoth({32, 4, 4, 128, 128}, 75, 2);
  CheckBoth({14, 2, 2, 64, 64}, 129, 1);
}

// More rows than all thread blocks of the backward take at a time, by large thread blocks and by small ones.
TEST_F(JoinedHeads, OfManyRows) {
  CheckBoth({16, 8, 8, 128, 128}, 2501, 1);
  CheckBoth({2, 1, 1, 128, 128}, 1667, 3);
}

TEST_F(JoinedHeads, OfThreeAxes) {
  CheckBoth({16, 8, 8, 128, 128}, 301, 1, {{"height", int64_t{20}}, {"width", int64_t{20}}});
  CheckBoth({4, 2, 2, 64, 64}, 75, 2, {{"height", int64_t{10}}, {"width", int64_t{7}}});
}

TEST_F(JoinedHeads, WithAnAmplitude) {
  CheckBoth({4, 2, 2, 128, 128}, 40, 2,
            {{"scaling", int64_t{3}},
             {"factor", 4.0},
             {"original", 32768.0},
             {"low", 1.0},
             {"high", 32.0},
             {"amplitude", 1.25}});
}

// Queries alone, keys and values alone, no values; a part of a head turns, with an odd vector behind it or none; lanes
// without vectors; heads that more than one thread block has.
TEST_F(JoinedHeads, OfAnyShape) {
  CheckBoth({16, 0, 0, 128, 128}, 33, 1);
  CheckBoth({0, 8, 8, 128, 64}, 33, 1);
  CheckBoth({3, 1, 0, 64, 16}, 131, 3);
  CheckBoth({1, 1, 1, 16, 16}, 1, 1);
  CheckBoth({5, 2, 2, 80, 32}, 70, 2);
  CheckBoth({2, 1, 1, 96, 96}, 2500, 1);
  CheckBoth({3, 2, 1, 96, 32}, 7, 1);
  CheckBoth({7, 7, 7, 24, 16}, 603, 1);
  CheckBoth({5, 1, 1, 40, 32}, 66, 1);
  CheckBoth({16, 16, 16, 256, 256}, 9, 1);
  CheckBoth({2, 1, 1, 256, 64}, 35, 1);
  CheckBoth({40, 8, 8, 128, 128}, 21, 1);
  CheckBoth({64, 8, 9, 64, 64}, 13, 1);
}

TEST_F(JoinedHeads, OneAfterTheOtherWhereNoKernelFits) {
  CheckBoth<false>({4, 2, 2, 12, 12}, 20, 2);
  CheckBoth<false>({4, 2, 2, 64, 24}, 20, 2);
  CheckBoth<false>({2, 1, 1, 264, 256}, 5, 1);
}

// What does not start at 16 bytes goes one after the other, and parameters may start anywhere.
TEST_F(JoinedHeads, AtAnyAddress) {
  const TurnedHeads heads = {4, 2, 2, 64, 64};
  const at::Tensor x = OnGpu(Random({6, 2, heads.features()})), dy = OnGpu(Random({6, 2, heads.features()})),
                   positions = at::randint(5000, {1, 6, 2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  const Tensors weights = {OnGpu(Random({64})), OnGpu(Random({64}))},
                shifted_weights = {Shifted(weights[0]), Shifted(weights[1])};
  Op op(heads.attributes());
  const auto near = [](const char* name, const at::Tensor& a, const at::Tensor& b) {
    EXPECT_LE(NormGap(a, b), 0.005) << name;
  };
  const Tensors forward = op.Run(kForward<>, {x, positions}, weights);
  near("forward", op.Run(kForward<>, {Shifted(x), positions}, weights)[1], forward[1]);
  EXPECT_TRUE(op.Run(kForward<>, {x, positions}, shifted_weights)[1].equal(forward[1]));
  const at::Tensor dx = op.Run(kBackward<>, {dy, positions, x, forward[0]}, weights)[0];
  near("shifted dy", op.Run(kBackward<>, {Shifted(dy), positions, x, forward[0]}, weights)[0], dx);
  near("shifted x", op.Run(kBackward<>, {dy, positions, Shifted(x), forward[0]}, weights)[0], dx);
  EXPECT_TRUE(op.Run(kBackward<>, {dy, positions, x, forward[0]}, shifted_weights)[0].equal(dx));
}

// The backward over the gradient that it turns back: the same bits, and the values' part is still there. Where the two
// run one after the other, the first of them writes there.
TEST_F(JoinedHeads, TakeOverTheMemoryOfWhatDies) {
  for (const TurnedHeads& heads : {TurnedHeads{16, 8, 8, 128, 128}, {3, 1, 1, 64, 16}, {2, 1, 0, 96, 96}}) {
    const at::Tensor x = OnGpu(Random({67, 2, heads.features()})), dy = OnGpu(Random({67, 2, heads.features()})),
                     positions = at::randint(5000, {1, 67, 2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
    Tensors weights;
    for (const at::Tensor& weight : heads.weights()) weights.push_back(OnGpu(weight));
    Op op(heads.attributes());
    const at::Tensor scale = op.Run(kForward<>, {x, positions}, weights)[0],
                     apart = op.Run(kBackward<>, {dy, positions, x, scale}, weights)[0];
    EXPECT_FALSE(apart.is_alias_of(dy));
    const at::Tensor dx = op.Overwriting().Run(kBackward<>, {dy, positions, x, scale}, weights)[0];
    EXPECT_TRUE(dx.is_same(dy));
    EXPECT_TRUE(dx.equal(apart));
  }
}

TEST_F(JoinedHeads, NoRows) {
  const TurnedHeads heads = {4, 2, 2, 64, 64};
  const auto narrow = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const at::Tensor none = at::empty({0, 2, heads.features()}, narrow),
                   positions = at::empty({1, 0, 2}, narrow.dtype(at::kLong)),
                   scale = at::empty({0, 2, 6}, narrow.dtype(at::kFloat));
  const Tensors weights = {OnGpu(Random({64})), OnGpu(Random({64}))};
  Op op(heads.attributes());
  const Tensors forward = op.Run(kForward<>, {none, positions}, weights);
  EXPECT_EQ(forward[0].sizes(), scale.sizes());
  EXPECT_EQ(forward[1].sizes(), none.sizes());
  EXPECT_EQ(op.Run(kBackward<>, {none, positions, none, scale}, weights)[0].sizes(), none.sizes());
}

}  // namespace
}  // namespace planwright::executor
