// The kernels on rows of the mixer and of norms, and the elementwise ones: at real widths, at lengths that fill no
// strip of positions, and where the plain form must take over.
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

struct Mixer {
  int64_t inner = 4096, bc = 1024, heads = 64, group = 512;

  int64_t features() const { return 2 * inner + 2 * bc + heads; }
  int64_t channels() const { return inner + 2 * bc; }
  Attributes conv() const { return {{"inner", inner}, {"bc", bc}, {"heads", heads}}; }
  Attributes gate() const { return {{"inner", inner}, {"group_size", group}, {"eps", 1e-5}}; }
  // The gated norm has no parts x, B and C, so the gate may be followed by anything.
  static Mixer OfGroups(int64_t groups, int64_t group) {
    return {.inner = groups * group, .bc = 8, .heads = 8, .group = group};
  }
};

class MixerRows : public Kernels {
 protected:
  // Forward, backward, and backward of a frozen part. `ends`: of packed documents.
  static void CheckConvolution(const Mixer& m, int64_t positions, int64_t samples, const at::Tensor& ends = {},
                               int64_t window = 4) {
    SCOPED_TRACE(testing::Message() << positions << " positions of " << samples << " samples");
    const at::Tensor zxbcdt = Random({positions, samples, m.features()});
    const at::Tensor dxbc = Random({positions, samples, m.channels()});
    const Tensors parameters = {Random({m.channels(), 1, window}), Random({m.channels()})};
    KernelCheck forward = {.attributes = m.conv(), .inputs = {zxbcdt}, .parameters = parameters};
    KernelCheck backward = {.attributes = m.conv(), .inputs = {dxbc, zxbcdt}, .parameters = parameters};
    if (ends.defined()) {
      forward.inputs.push_back(ends), forward.host_inputs = {1};
      backward.inputs.push_back(ends), backward.host_inputs = {2};
    }
    Check("convolution", ops::RunMambaConv, forward);
    Check("frozen", ops::RunMambaConvGrad, backward);
    backward.gradients_like = parameters;
    Check("convolution grad", ops::RunMambaConvGrad, backward);
  }

  // `wide`: statistics are fp32, as the plan has them; otherwise they are bf16, which only the plain form takes.
  static void CheckGatedNorm(const Mixer& m, int64_t positions, int64_t samples, bool wide = true) {
    SCOPED_TRACE(testing::Message() << positions * samples << " rows of groups of " << m.group);
    const at::Tensor y = Random({positions, samples, m.inner}), dyn = Random({positions, samples, m.inner});
    const at::Tensor zxbcdt = Random({positions, samples, m.features()}), weight = Random({m.inner});
    const Tensors out =
        Check("gated norm", ops::RunGatedNorm, {.attributes = m.gate(), .inputs = {y, zxbcdt}, .parameters = {weight}});
    KernelCheck backward = {
        .attributes = m.gate(), .inputs = {dyn, y, zxbcdt, out[1].cpu().to(at::kDouble)}, .parameters = {weight}};
    if (wide) backward.wide_inputs = {3};
    Check("frozen", ops::RunGatedNormGrad, backward);
    backward.gradients_like = {weight};
    Check("gated norm grad", ops::RunGatedNormGrad, backward);
  }

  static void CheckRmsNorm(at::IntArrayRef shape, bool wide = true) {
    SCOPED_TRACE(testing::Message() << "x " << shape);
    const at::Tensor x = Random(shape), dy = Random(shape), weight = Random({shape.back()});
    const Tensors out =
        Check("rms norm", ops::RunRmsNorm, {.attributes = {{"eps", 1e-5}}, .inputs = {x}, .parameters = {weight}});
    KernelCheck backward = {.inputs = {dy, x, out[1].cpu().to(at::kDouble)}, .parameters = {weight}};
    if (wide) backward.wide_inputs = {2};
    Check("frozen", ops::RunRmsNormGrad, backward);
    backward.gradients_like = {weight};
    Check("rms norm grad", ops::RunRmsNormGrad, backward);
  }

  static void CheckLayerNorm(at::IntArrayRef shape, double around = 0) {
    SCOPED_TRACE(testing::Message() << "x " << shape << " around " << around);
    const at::Tensor x = Random(shape) + around, dy = Random(shape);
    const Tensors parameters = {Random({shape.back()}), Random({shape.back()})};
    const Tensors out = Check("layer norm", ops::RunLayerNorm,
                              {.attributes = {{"eps", 1e-6}}, .inputs = {x}, .parameters = parameters});
    KernelCheck backward = {.inputs = {dy, x, out[1].cpu().to(at::kDouble), out[2].cpu().to(at::kDouble)},
                            .parameters = parameters,
                            .wide_inputs = {2, 3}};
    Check("frozen", ops::RunLayerNormGrad, backward);
    backward.gradients_like = parameters;
    Check("layer norm grad", ops::RunLayerNormGrad, backward);
  }

  static void CheckRowBias(at::IntArrayRef shape) {
    SCOPED_TRACE(testing::Message() << "x " << shape);
    const at::Tensor bias = Random({shape.back()});
    Check("add residual bias", ops::RunAddResidualBias,
          {.inputs = {Random(shape), Random(shape)}, .parameters = {bias}});
    Check("bias grad", ops::RunBiasGrad, {.inputs = {Random(shape)}, .gradients_like = {bias}});
  }

  static at::Tensor OnGpu(const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); }
  // The same numbers, one element away from any alignment.
  static at::Tensor Shifted(const at::Tensor& x) {
    return at::cat({x.view({-1}).narrow(0, 0, 1), x.view({-1})}).narrow(0, 1, x.numel()).view(x.sizes());
  }
  static Tensors Gradients(const Tensors& parameters) {
    Tensors gradients;
    for (const at::Tensor& parameter : parameters)
      gradients.push_back(at::full(parameter.sizes(), 0.5, parameter.options().dtype(at::kFloat)));
    return gradients;
  }
};

TEST_F(MixerRows, ConvolutionOfRealWidths) {
  for (const int64_t positions : {1, 3, 37, 150}) CheckConvolution({}, positions, 2);
}

// Around the 32 and 64 positions of a warp and the 128 and 256 of its thread block, and channels that fill no warp.
TEST_F(MixerRows, ConvolutionOfAnyLength) {
  const Mixer narrow = {.inner = 96, .bc = 16, .heads = 8};
  for (const int64_t positions : {2, 4, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257, 700})
    CheckConvolution(narrow, positions, positions % 3 + 1);
}

TEST_F(MixerRows, ConvolutionOfPackedDocuments) {
  const Mixer narrow = {.inner = 160, .bc = 16, .heads = 8};
  CheckConvolution(narrow, 300, 1, at::tensor({1, 2, 5, 9, 31, 32, 64, 65, 130, 192, 255, 258, 299, 300}, at::kLong));
  CheckConvolution(narrow, 300, 2, at::tensor({3, 260, 300}, at::kLong));
  CheckConvolution(narrow, 70, 1, at::tensor({70}, at::kLong));
  CheckConvolution({}, 40, 1, at::tensor({7, 33, 40}, at::kLong));
}

TEST_F(MixerRows, ConvolutionOfOtherShapesIsPlain) {
  CheckConvolution({.inner = 24, .bc = 3, .heads = 8}, 37, 2);
  CheckConvolution({.inner = 24, .bc = 8, .heads = 3}, 37, 2);
  CheckConvolution({.inner = 24, .bc = 8, .heads = 8}, 37, 2, {}, /*window=*/3);
}

// Two cp ranks, each with its part of the parameters.
TEST_F(MixerRows, PartsOfParametersOverCp) {
  const Mixer m = {.inner = 64, .bc = 16, .heads = 8, .group = 32};
  const at::Tensor zxbcdt = Random({37, 2, m.features()}), dxbc = Random({37, 2, m.channels()});
  const at::Tensor y = Random({37, 2, m.inner}), dyn = Random({37, 2, m.inner});
  const Tensors conv = {Random({2 * m.channels(), 1, 4}), Random({2 * m.channels()})}, norm = {Random({2 * m.inner})};
  for (int rank = 0; rank < 2; ++rank) {
    const auto same = [&](Handler handler, Attributes attributes, const Tensors& inputs, const Tensors& parameters,
                          bool learns) {
      attributes["parameter_cp"] = int64_t{2};
      Tensors on_gpu, exact, own, exact_own;
      for (const at::Tensor& x : inputs) {
        const bool scale = x.scalar_type() == at::kFloat;  // keeps its dtype
        on_gpu.push_back(scale ? x.to(at::kCUDA) : OnGpu(x));
        exact.push_back(on_gpu.back().cpu().to(at::kDouble));
      }
      for (const at::Tensor& x : parameters) {
        own.push_back(OnGpu(x));
        exact_own.push_back(own.back().cpu().to(at::kDouble));
      }
      const Tensors gradients = learns ? Gradients(own) : Tensors();
      const Tensors exact_gradients = learns ? FilledGradients(exact_own) : Tensors();
      const Tensors out = Op(attributes).OnCpRank(rank, 2).Run(handler, on_gpu, own, gradients);
      const Tensors expected = Op(attributes).OnCpRank(rank, 2).Run(handler, exact, exact_own, exact_gradients);
      EXPECT_LE(NormGap(out[0], expected[0]), Tolerances().narrow);
      EXPECT_LE(NormGap(out.back(), expected.back()), Tolerances().narrow);
      for (size_t i = 0; i < gradients.size(); ++i)
        EXPECT_LE(NormGap(gradients[i] - 0.5, exact_gradients[i] - 0.5), Tolerances().gradients);
      return out;
    };
    same(ops::RunMambaConv, m.conv(), {zxbcdt}, conv, false);
    same(ops::RunMambaConvGrad, m.conv(), {dxbc, zxbcdt}, conv, true);
    const at::Tensor scale = same(ops::RunGatedNorm, m.gate(), {y, zxbcdt}, norm, false)[1];
    same(ops::RunGatedNormGrad, m.gate(), {dyn, y, zxbcdt, scale}, norm, true);
  }
}

TEST_F(MixerRows, GatedNormOfRealWidths) {
  for (const int64_t positions : {1, 37, 150}) CheckGatedNorm({}, positions, 2);
}

// Groups of one and of two vectors a lane, with idle lanes; rows that are dealt out in turn.
TEST_F(MixerRows, GatedNormOfAnyGroup) {
  CheckGatedNorm(Mixer::OfGroups(1, 512), 5, 1);
  CheckGatedNorm(Mixer::OfGroups(3, 320), 7, 2);
  CheckGatedNorm(Mixer::OfGroups(4, 256), 7, 2);
  CheckGatedNorm(Mixer::OfGroups(5, 24), 33, 3);
  CheckGatedNorm(Mixer::OfGroups(8, 16), 2000, 1);
}

TEST_F(MixerRows, GatedNormOfOtherShapesIsPlain) {
  CheckGatedNorm(Mixer::OfGroups(2, 1024), 5, 2);
  CheckGatedNorm(Mixer::OfGroups(2, 20), 5, 2);
  CheckGatedNorm({.inner = 64, .bc = 8, .heads = 3, .group = 32}, 5, 2);
  CheckGatedNorm(Mixer::OfGroups(4, 64), 5, 2, /*wide=*/false);
}

TEST_F(MixerRows, RmsNormOfAnyWidth) {
  CheckRmsNorm({37, 2, 2688});
  CheckRmsNorm({1, 1, 2688});
  CheckRmsNorm({1900, 2688});  // blocks take several turns, and not equally many
  CheckRmsNorm({9, 5120});
  CheckRmsNorm({3, 6144});
  CheckRmsNorm({33, 8});
  CheckRmsNorm({5, 3, 264});
}

TEST_F(MixerRows, RmsNormOfOtherShapesIsPlain) {
  CheckRmsNorm({5, 2, 12});
  CheckRmsNorm({3, 6152});
  CheckRmsNorm({5, 2, 64}, /*wide=*/false);
}

// Parameters and gradients are views of flat buffers: kernels must not ask for alignment there, and inputs that have
// none go through the plain form.
TEST_F(MixerRows, ParametersAndGradientsMayLieAnywhere) {
  const Mixer m = {.inner = 64, .bc = 16, .heads = 8, .group = 32};
  const auto same = [&](Handler handler, const Attributes& attributes, const Tensors& inputs,
                        const Tensors& parameters) {
    Tensors shifted;
    for (const at::Tensor& parameter : parameters) shifted.push_back(Shifted(parameter));
    Tensors gradients = Gradients(parameters), shifted_gradients;
    for (const at::Tensor& gradient : gradients) shifted_gradients.push_back(Shifted(gradient));
    const Tensors out = Op(attributes).Run(handler, inputs, parameters, gradients);
    const Tensors again = Op(attributes).Run(handler, inputs, shifted, shifted_gradients);
    for (size_t i = 0; i < out.size(); ++i) EXPECT_TRUE(again[i].equal(out[i])) << i;
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(shifted_gradients[i].equal(gradients[i])) << i;

    Tensors odd = inputs;
    odd[0] = Shifted(inputs[0]);
    const Tensors plain = Op(attributes).Run(handler, odd, parameters, Gradients(parameters));
    for (size_t i = 0; i < out.size(); ++i) EXPECT_LE(NormGap(plain[i], out[i]), Tolerances().narrow) << i;
  };
  const at::Tensor zxbcdt = OnGpu(Random({37, 2, m.features()})), dxbc = OnGpu(Random({37, 2, m.channels()}));
  const at::Tensor y = OnGpu(Random({37, 2, m.inner})), dyn = OnGpu(Random({37, 2, m.inner}));
  const Tensors conv = {OnGpu(Random({m.channels(), 1, 4})), OnGpu(Random({m.channels()}))};
  const Tensors norm = {OnGpu(Random({m.inner}))};
  same(ops::RunMambaConvGrad, m.conv(), {dxbc, zxbcdt}, conv);
  const at::Tensor scale = Op(m.gate()).Run(ops::RunGatedNorm, {y, zxbcdt}, norm)[1];
  same(ops::RunGatedNormGrad, m.gate(), {dyn, y, zxbcdt, scale}, norm);
  const at::Tensor row_scale = Op(m.gate()).Run(ops::RunRmsNorm, {y}, norm)[1];
  same(ops::RunRmsNormGrad, {}, {dyn, y, row_scale}, norm);
}

// Widths of encoders, some that fill no warp, the widest, and numbers of rows around what thread blocks take at a time.
// Rows far from 0 have a deviation that a difference of sums would lose.
TEST_F(MixerRows, LayerNormOfAnyRows) {
  for (const int64_t width : {8, 96, 1024, 1152, 1280, 6144}) {
    for (const int64_t rows : {1, 2, 3, 263, 530, 1585}) CheckLayerNorm({rows, width});
  }
  CheckLayerNorm({3, 7, 1280});
  CheckLayerNorm({530, 1280}, 16);
  CheckLayerNorm({37, 60});  // the plain form
}

TEST_F(MixerRows, BiasOfAnyRows) {
  for (const int64_t width : {8, 96, 1024, 1280, 6144}) {
    for (const int64_t rows : {1, 2, 3, 1055, 1057, 3171}) CheckRowBias({rows, width});
  }
  CheckRowBias({3, 7, 1280});
  CheckRowBias({37, 60});  // the plain form
}

TEST_F(MixerRows, NoPositionsAddNothing) {
  const Mixer m = {.inner = 64, .bc = 16, .heads = 8, .group = 32};
  const at::Tensor zxbcdt = OnGpu(Random({0, 1, m.features()})), y = OnGpu(Random({0, 1, m.inner}));
  const Tensors conv = {OnGpu(Random({m.channels(), 1, 4})), OnGpu(Random({m.channels()}))};
  const Tensors norm = {OnGpu(Random({m.inner}))};
  const Tensors conv_gradients = Gradients(conv), norm_gradients = Gradients(norm);
  const at::Tensor xbc = Op(m.conv()).Run(ops::RunMambaConv, {zxbcdt}, conv)[0];
  EXPECT_EQ(xbc.sizes(), at::IntArrayRef({0, 1, m.channels()}));
  Op(m.conv()).Run(ops::RunMambaConvGrad, {xbc, zxbcdt}, conv, conv_gradients);
  const Tensors gated = Op(m.gate()).Run(ops::RunGatedNorm, {y, zxbcdt}, norm);
  Op(m.gate()).Run(ops::RunGatedNormGrad, {y, y, zxbcdt, gated[1]}, norm, norm_gradients);
  const Tensors rms = Op(m.gate()).Run(ops::RunRmsNorm, {y}, norm);
  Op().Run(ops::RunRmsNormGrad, {y, y, rms[1]}, norm, norm_gradients);
  for (const Tensors& gradients : {conv_gradients, norm_gradients}) {
    for (const at::Tensor& gradient : gradients) EXPECT_TRUE((gradient == 0.5).all().item<bool>());
  }
}

// The last vector is not full, or there is no full one.
TEST_F(MixerRows, ElementwiseOfAnyCount) {
  for (const int64_t count : {1, 7, 8, 4096, 4099, 100'005}) {
    SCOPED_TRACE(count);
    const at::Tensor x = OnGpu(Random({count})), dy = OnGpu(Random({count})), z = OnGpu(Random({count}));
    x[0] = NAN;
    // The bits of the plain form, which rounds once too: relu and the factor 2 are exact.
    const auto equal = [](const at::Tensor& a, const at::Tensor& b) {
      return at::equal(a.nan_to_num(1234.0), b.nan_to_num(1234.0));
    };
    EXPECT_TRUE(equal(Op().Run(ops::RunSquaredRelu, {x})[0], x.relu().square()));
    EXPECT_TRUE(equal(Op().Run(ops::RunSquaredReluGrad, {dy, x})[0], x.relu() * 2 * dy));
    const at::Tensor sum = x.to(at::kFloat) + dy.to(at::kFloat) + z.to(at::kFloat);
    EXPECT_TRUE(equal(Op().Run(ops::RunAdd, {x, dy, z})[0], sum.to(at::kBFloat16)));
  }
}

TEST_F(MixerRows, ElementwiseOfStridesIsPlain) {
  const at::Tensor x = Random({24, 40}).t(), dy = Random({40, 24});
  Check("squared relu", ops::RunSquaredRelu, {.inputs = {x}});
  Check("squared relu grad", ops::RunSquaredReluGrad, {.inputs = {dy, x}});
  // The plain form rounds after each term.
  Check("add", ops::RunAdd, {.inputs = {x, dy, dy}, .tolerances = {.narrow = 0.004}});
  Check("add two", ops::RunAdd, {.inputs = {dy, dy}});
}

}  // namespace
}  // namespace planwright::executor
