// The kernels on rows of decoders: the gated activation, norms of heads, the rotary embedding. At real widths, at
// widths that fill no warp and no thread block, and where the plain form must take over.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

struct HeadSizes {
  int64_t q, k, v, head_dim;

  int64_t features() const { return (q + k + v) * head_dim; }
  Attributes attributes() const {
    return {{"q_heads", q}, {"k_heads", k}, {"v_heads", v}, {"head_dim", head_dim}, {"eps", 1e-6}};
  }
};

class DecoderRows : public Kernels {
 protected:
  static void CheckGate(at::IntArrayRef rows, int64_t width) {
    SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
    std::vector<int64_t> narrow = rows.vec(), wide = rows.vec();
    narrow.push_back(width), wide.push_back(2 * width);
    const at::Tensor gu = Random(wide), dh = Random(narrow);
    Check("gate", ops::RunGatedSilu, {.attributes = {{"width", width}}, .inputs = {gu}});
    Check("gate grad", ops::RunGatedSiluGrad, {.attributes = {{"width", width}}, .inputs = {dh, gu}});
  }

  // `wide`: statistics are fp32, as the plan has them; otherwise they are bf16, which only the plain form takes.
  static void CheckNorm(const HeadSizes& sizes, int64_t positions, int64_t samples, bool wide = true) {
    SCOPED_TRACE(testing::Message() << positions * samples << " rows of " << sizes.q << ", " << sizes.k << ", "
                                    << sizes.v << " heads of " << sizes.head_dim);
    const at::Tensor x = Random({positions, samples, sizes.features()}),
                     dy = Random({positions, samples, sizes.features()});
    Tensors weights;
    for (int64_t heads : {sizes.q, sizes.k}) {
      if (heads > 0) weights.push_back(Random({sizes.head_dim}));
    }
    const Tensors out =
        Check("norm", ops::RunHeadNorm, {.attributes = sizes.attributes(), .inputs = {x}, .parameters = weights});
    KernelCheck backward = {
        .attributes = sizes.attributes(), .inputs = {dy, x, out[1].cpu().to(at::kDouble)}, .parameters = weights};
    if (wide) backward.wide_inputs = {2};
    Check("frozen", ops::RunHeadNormGrad, backward);
    backward.gradients_like = weights;
    Check("norm grad", ops::RunHeadNormGrad, backward);
  }

  // positions [1,S,B], or [3,S,B] where planes turn by rows and columns; random ones, up to 131,072.
  static void CheckRope(const HeadSizes& sizes, int64_t rotary, int64_t positions, int64_t samples,
                        const Attributes& scaling = {}) {
    SCOPED_TRACE(testing::Message() << positions * samples << " rows of " << sizes.q << ", " << sizes.k << ", "
                                    << sizes.v << " heads of " << sizes.head_dim << ", of which turn " << rotary);
    Attributes attributes = sizes.attributes();
    attributes.erase("eps");
    attributes.insert({{"rotary", rotary}, {"theta", 1e6}});
    attributes.insert(scaling.begin(), scaling.end());
    const int64_t axes = scaling.contains("height") ? 3 : 1;
    const at::Tensor x = Random({positions, samples, sizes.features()}),
                     at_position = at::randint(131073, {axes, positions, samples}, at::kLong);
    Check("rope", ops::RunRope, {.attributes = attributes, .inputs = {x, at_position}});
    Check("rope grad", ops::RunRopeGrad, {.attributes = attributes, .inputs = {x, at_position}});
  }

  // The same numbers, one element away from any alignment.
  static at::Tensor Shifted(const at::Tensor& x) {
    return at::cat({x.view({-1}).narrow(0, 0, 1), x.view({-1})}).narrow(0, 1, x.numel()).view(x.sizes());
  }
  static at::Tensor OnGpu(const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); }
};

TEST_F(DecoderRows, GateOfRealWidths) {
  CheckGate({67, 2}, 6144);
  CheckGate({5, 1}, 14336);
}

// Around the 32 lanes of a warp, the 128 threads of a block and the 256 vectors that it takes.
TEST_F(DecoderRows, GateOfAnyWidth) {
  for (const int64_t vectors : {1, 2, 31, 32, 33, 64, 65, 127, 128, 129, 255, 256, 257, 300})
    CheckGate({3}, 8 * vectors);
  CheckGate({1025, 3}, 40);
}

TEST_F(DecoderRows, GateOfOtherWidthsIsPlain) {
  CheckGate({5, 2}, 12);
  CheckGate({5, 2}, 3);
}

TEST_F(DecoderRows, NormOfRealHeads) {
  CheckNorm({16, 8, 8, 128}, 301, 1);
  CheckNorm({32, 4, 4, 128}, 75, 2);
}

// Queries alone, keys and values alone, no values; heads that fill no warp, and more than a thread block has.
TEST_F(DecoderRows, NormOfAnyHeads) {
  CheckNorm({16, 0, 0, 128}, 33, 1);
  CheckNorm({0, 8, 8, 128}, 33, 1);
  CheckNorm({3, 1, 0, 64}, 130, 3);
  CheckNorm({1, 1, 1, 8}, 1, 1);
  CheckNorm({5, 2, 2, 80}, 70, 2);
  CheckNorm({7, 7, 7, 24}, 600, 1);
  CheckNorm({16, 16, 16, 256}, 9, 1);
  CheckNorm({2, 1, 1, 96}, 2500, 1);
}

TEST_F(DecoderRows, NormOfOtherHeadsIsPlain) {
  CheckNorm({4, 2, 2, 12}, 20, 2);
  CheckNorm({2, 1, 1, 264}, 5, 1);
  CheckNorm({4, 2, 2, 64}, 20, 2, /*wide=*/false);
}

TEST_F(DecoderRows, RopeOfRealHeads) {
  CheckRope({16, 8, 8, 128}, 128, 301, 1);
  CheckRope({32, 8, 8, 128}, 128, 75, 2,
            {{"scaling", int64_t{2}}, {"factor", 8.0}, {"original", 8192.0}, {"low", 1.0}, {"high", 4.0}});
  CheckRope({4, 2, 2, 64}, 64, 75, 2,
            {{"scaling", int64_t{3}},
             {"factor", 4.0},
             {"original", 32768.0},
             {"low", 1.0},
             {"high", 32.0},
             {"amplitude", 1.25}});
}

TEST_F(DecoderRows, AxialRope) {
  for (const int64_t head_dim : {64, 80, 16}) {
    const at::Tensor grid = at::tensor({4, 6, 2, 40, 34, 2}, at::kLong).view({3, 2});
    const Attributes attributes = {{"heads", int64_t{3}}, {"head_dim", head_dim}, {"theta", 10000.0}};
    const at::Tensor x = Random({24 + 80 + 68, 9 * head_dim});
    Check("axial rope", ops::RunAxialRope, {.attributes = attributes, .inputs = {x, grid}, .host_inputs = {1}});
    Check("axial rope grad", ops::RunAxialRopeGrad,
          {.attributes = attributes, .inputs = {x, grid}, .host_inputs = {1}});
  }
}

TEST_F(DecoderRows, RopeOfThreeAxes) {
  CheckRope({16, 8, 8, 128}, 128, 301, 1, {{"height", int64_t{20}}, {"width", int64_t{20}}});
  CheckRope({4, 2, 2, 64}, 64, 75, 2, {{"height", int64_t{10}}, {"width", int64_t{7}}});
}

// Heads of which a part turns, with a vector or more behind it, also an odd one; no values; more heads than a thread
// block has.
TEST_F(DecoderRows, RopeOfAnyHeads) {
  CheckRope({16, 0, 0, 128}, 128, 33, 1);
  CheckRope({0, 8, 8, 128}, 64, 33, 1);
  CheckRope({3, 1, 1, 64}, 16, 131, 3);
  CheckRope({1, 1, 1, 16}, 16, 1, 1);
  CheckRope({5, 2, 2, 80}, 32, 70, 2);
  CheckRope({7, 7, 7, 24}, 16, 603, 1);
  CheckRope({16, 16, 16, 256}, 256, 9, 1);
  CheckRope({40, 40, 40, 40}, 32, 6, 1);
}

TEST_F(DecoderRows, RopeOfOtherHeadsIsPlain) {
  CheckRope({4, 2, 2, 12}, 12, 20, 2);
  CheckRope({4, 2, 2, 64}, 24, 20, 2);
  CheckRope({2, 1, 1, 264}, 256, 5, 1);
}

// Over what they turn: the same bits, and what passes is still there. Heads of 12 are turned by the plain form.
TEST_F(DecoderRows, RopesTakeOverTheMemoryOfWhatTheyTurn) {
  const auto check = [](Op op, Handler handler, const at::Tensor& x, const at::Tensor& places) {
    const at::Tensor apart = op.Run(handler, {x, places})[0];
    EXPECT_FALSE(apart.is_alias_of(x));
    const at::Tensor y = op.Overwriting().Run(handler, {x, places})[0];
    EXPECT_TRUE(y.is_same(x));
    EXPECT_TRUE(y.equal(apart));
  };
  for (const auto& [sizes, rotary] : std::vector<std::pair<HeadSizes, int64_t>>{
           {{16, 8, 8, 128}, 128}, {{3, 1, 1, 64}, 16}, {{5, 2, 0, 40}, 32}, {{4, 2, 2, 12}, 12}}) {
    Attributes attributes = sizes.attributes();
    attributes.insert({{"rotary", rotary}, {"theta", 1e6}});
    const at::Tensor positions = at::randint(5000, {1, 67, 2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
    for (const Handler handler : {ops::RunRope, ops::RunRopeGrad})
      check(Op(attributes), handler, OnGpu(Random({67, 2, sizes.features()})), positions);
  }
  const at::Tensor grid = at::tensor({4, 6, 2, 40}, at::kLong).view({2, 2});
  for (const int64_t head_dim : {64, 80, 72}) {
    const Attributes attributes = {{"heads", int64_t{3}}, {"head_dim", head_dim}, {"theta", 10000.0}};
    for (const Handler handler : {ops::RunAxialRope, ops::RunAxialRopeGrad})
      check(Op(attributes), handler, OnGpu(Random({24 + 80, 9 * head_dim})), grid);
  }
}

// A position is turned by as much, wherever it stands: a cut of a sequence, whose positions are no tensor of their own.
TEST_F(DecoderRows, RopeOfACutOfPositions) {
  const HeadSizes sizes = {2, 1, 1, 64};
  Attributes attributes = sizes.attributes();
  attributes.insert({{"rotary", int64_t{64}}, {"theta", 1e4}});
  const at::Tensor x = OnGpu(Random({6, 2, sizes.features()}));
  const at::Tensor all = at::randint(5000, {1, 9, 4}, at::TensorOptions(at::kCUDA).dtype(at::kLong)),
                   cut = all.narrow(1, 2, 6).narrow(2, 1, 2);
  const at::Tensor one = Op(attributes).Run(ops::RunRope, {x, cut})[0],
                   other = Op(attributes).Run(ops::RunRope, {x, cut.contiguous()})[0];
  EXPECT_TRUE(one.equal(other));
}

// The bias is added before the result is rounded, wherever it starts in the buffer of parameters.
TEST_F(DecoderRows, LinearWithABias) {
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{{75, 2048, 512}, {30, 24, 40}, {1, 8, 8}}) {
    const double scale = 1 / std::sqrt(static_cast<double>(in));
    const at::Tensor x = Random({rows, 2, in}), weight = Random({out, in}).mul(scale), bias = Random({out});
    Check("linear", ops::RunLinear, {.inputs = {x}, .parameters = {weight, bias}});
    const at::Tensor shifted = Op().Run(ops::RunLinear, {OnGpu(x)}, {OnGpu(weight), Shifted(OnGpu(bias))})[0],
                     usual = Op().Run(ops::RunLinear, {OnGpu(x)}, {OnGpu(weight), OnGpu(bias)})[0];
    EXPECT_LE(NormGap(shifted, usual), 0.005);  // each is rounded by itself
  }
}

// What does not start at 16 bytes goes through the plain form, and parameters may start anywhere.
TEST_F(DecoderRows, AnyAddress) {
  const HeadSizes sizes = {4, 2, 2, 64};
  Attributes attributes = sizes.attributes(), of_rope = attributes;
  attributes.insert({"width", sizes.features() / 2});
  of_rope.insert({{"rotary", int64_t{64}}, {"theta", 1e4}});
  const at::Tensor x = OnGpu(Random({6, 2, sizes.features()})), dh = OnGpu(Random({6, 2, sizes.features() / 2})),
                   positions = at::randint(5000, {1, 6, 2}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  const Tensors weights = {OnGpu(Random({64})), OnGpu(Random({64}))},
                shifted_weights = {Shifted(weights[0]), Shifted(weights[1])};
  Op op(attributes), rope(of_rope);
  const auto near = [](const char* name, const at::Tensor& a, const at::Tensor& b) {
    EXPECT_LE(NormGap(a, b), 0.0025) << name;
  };
  near("rope", rope.Run(ops::RunRope, {Shifted(x), positions})[0], rope.Run(ops::RunRope, {x, positions})[0]);
  near("gate", op.Run(ops::RunGatedSilu, {Shifted(x)})[0], op.Run(ops::RunGatedSilu, {x})[0]);
  near("gate grad", op.Run(ops::RunGatedSiluGrad, {Shifted(dh), x})[0], op.Run(ops::RunGatedSiluGrad, {dh, x})[0]);
  const Tensors norm = op.Run(ops::RunHeadNorm, {x}, weights);
  near("norm", op.Run(ops::RunHeadNorm, {Shifted(x)}, weights)[0], norm[0]);
  EXPECT_TRUE(op.Run(ops::RunHeadNorm, {x}, shifted_weights)[0].equal(norm[0]));
  near("norm grad", op.Run(ops::RunHeadNormGrad, {Shifted(x), x, norm[1]}, weights)[0],
       op.Run(ops::RunHeadNormGrad, {x, x, norm[1]}, weights)[0]);
}

TEST_F(DecoderRows, NoRows) {
  const HeadSizes sizes = {4, 2, 2, 64};
  Attributes attributes = sizes.attributes(), of_rope = attributes;
  attributes.insert({"width", sizes.features() / 2});
  of_rope.insert({{"rotary", int64_t{64}}, {"theta", 1e4}});
  const auto narrow = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
  const at::Tensor none = at::empty({0, 2, sizes.features()}, narrow);
  Op op(attributes), rope(of_rope);
  EXPECT_EQ(rope.Run(ops::RunRope, {none, at::empty({1, 0, 2}, narrow.dtype(at::kLong))})[0].sizes(), none.sizes());
  EXPECT_EQ(op.Run(ops::RunGatedSilu, {none})[0].sizes(), at::IntArrayRef({0, 2, sizes.features() / 2}));
  EXPECT_EQ(op.Run(ops::RunHeadNorm, {none}, {OnGpu(Random({64})), OnGpu(Random({64}))})[1].sizes(),
            at::IntArrayRef({0, 2, 6}));
}

}  // namespace
}  // namespace planwright::executor
