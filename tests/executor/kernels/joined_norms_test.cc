// Backwards of norms together with the sum that follows: dx is added to the gradient of a residual sum before it is
// rounded. Without a GPU all tests but those of the choice are skipped.
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <string>
#include <vector>

#include "tests/executor/kernels/check_kernel.h"
#include "tests/executor/ops/run_joined.h"

namespace planwright::executor {
namespace {

// The other term is behind dx, or before it.
constexpr OfFirst kRmsThenOther = {.inputs = 3, .parameters = 1, .gradients = 1, .place = 0},
                  kOtherThenRms = {.inputs = 3, .parameters = 1, .gradients = 1, .place = 1},
                  kLayerThenOther = {.inputs = 4, .parameters = 2, .gradients = 2, .place = 0},
                  kOtherThenLayer = {.inputs = 4, .parameters = 2, .gradients = 2, .place = 1};

template <OfFirst kOf, bool joined = true>
Tensors RmsNormGradWithAdd(const ComputeContext& context) {
  return RunJoined<OpKind::kRmsNormGrad, OpKind::kAdd, kOf, joined>(context);
}
template <OfFirst kOf, bool joined = true>
Tensors LayerNormGradWithAdd(const ComputeContext& context) {
  return RunJoined<OpKind::kLayerNormGrad, OpKind::kAdd, kOf, joined>(context);
}

// Whether a GPU does the backward and an add of `terms` at once. Types are texts of plan files.
bool NormIsJoined(OpKind first_kind, std::vector<std::string> read, std::vector<std::string> terms, int64_t width) {
  Instruction first, second;
  first.kind = first_kind, second.kind = OpKind::kAdd, second.inputs = terms;  // how many there are
  std::vector<ValueType> read_types, term_types;
  for (const std::string& text : read) read_types.push_back(TypeFromText(text).value());
  for (const std::string& text : terms) term_types.push_back(TypeFromText(text).value());
  const Tensors parameters(first_kind == OpKind::kRmsNormGrad ? 1 : 2, at::empty({width}, at::kBFloat16)), none;
  const at::Device gpu(at::kCUDA, 0);
  ComputeBinding one{first, nullptr, gpu, {}, parameters, none}, other{second, nullptr, gpu, {}, none, none};
  for (const ValueType& type : read_types) one.inputs.push_back(&type);
  for (const ValueType& type : term_types) other.inputs.push_back(&type);
  return ChooseJoinedForm(one, other) != nullptr;
}

TEST(JoinedNormForms, TakeASumOfTwoOfOneType) {
  const std::string x = "bf16[24,1,64]", statistics = "fp32[24,1,1]", rows = "bf16[rows,64]";
  const auto rms = [&](const std::vector<std::string>& terms) {
    return NormIsJoined(OpKind::kRmsNormGrad, {x, x, statistics}, terms, 64);
  };
  EXPECT_TRUE(rms({x, x}));
  EXPECT_FALSE(rms({x, x, x}));
  EXPECT_FALSE(rms({x, "fp32[24,1,64]"}));
  EXPECT_FALSE(rms({x, "bf16[1,1,64]"}));
  EXPECT_FALSE(NormIsJoined(OpKind::kRmsNormGrad, {x, x, "bf16[24,1,1]"}, {x, x}, 64));
  EXPECT_FALSE(NormIsJoined(OpKind::kRmsNormGrad, {"bf16[24,60]", "bf16[24,60]", "fp32[24,1]"},
                            {"bf16[24,60]", "bf16[24,60]"}, 60));
  for (const int64_t width : {4096, 4104}) {
    const std::string wide = "bf16[24," + std::to_string(width) + "]";
    EXPECT_EQ(NormIsJoined(OpKind::kRmsNormGrad, {wide, wide, "fp32[24,1]"}, {wide, wide}, width), width == 4096);
  }
  EXPECT_TRUE(NormIsJoined(OpKind::kLayerNormGrad, {rows, rows, "fp32[rows,1]", "fp32[rows,1]"}, {rows, rows}, 64));
  EXPECT_FALSE(NormIsJoined(OpKind::kLayerNormGrad, {rows, rows, "fp32[rows,1]", "fp32[rows,1]"}, {rows, x}, 64));
}

class JoinedNorms : public Kernels {
 protected:
  static at::Tensor OnGpu(const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); }
  // The same numbers, one element away from any alignment.
  static at::Tensor Shifted(const at::Tensor& x) {
    return at::cat({x.view({-1}).narrow(0, 0, 1), x.view({-1})}).narrow(0, 1, x.numel()).view(x.sizes());
  }

  static KernelCheck RmsNorm(at::IntArrayRef shape) {
    const at::Tensor x = Random(shape), weight = Random({shape.back()});
    const Tensors out = Op({{"eps", 1e-5}}).Run(ops::RunRmsNorm, {OnGpu(x)}, {OnGpu(weight)});
    return {.inputs = {Random(shape), x, out[1].cpu().to(at::kDouble), Random(shape)},
            .parameters = {weight},
            .gradients_like = {weight},
            .wide_inputs = {2}};
  }
  static KernelCheck LayerNorm(at::IntArrayRef shape, double around = 0) {
    const at::Tensor x = Random(shape) + around;
    const Tensors parameters = {Random({shape.back()}), Random({shape.back()})};
    const Tensors out =
        Op({{"eps", 1e-6}}).Run(ops::RunLayerNorm, {OnGpu(x)}, {OnGpu(parameters[0]), OnGpu(parameters[1])});
    return {.inputs = {Random(shape), x, out[1].cpu().to(at::kDouble), out[2].cpu().to(at::kDouble), Random(shape)},
            .parameters = parameters,
            .gradients_like = parameters,
            .wide_inputs = {2, 3}};
  }

  // In both places, and of a frozen part.
  static void CheckBoth(Handler before, Handler behind, KernelCheck check) {
    SCOPED_TRACE(testing::Message() << "x " << check.inputs[1].sizes());
    Check("dx and another", before, check);
    Check("another and dx", behind, check);
    check.gradients_like = {};
    Check("frozen", before, check);
  }
  static void CheckRmsNorm(at::IntArrayRef shape) {
    CheckBoth(RmsNormGradWithAdd<kRmsThenOther>, RmsNormGradWithAdd<kOtherThenRms>, RmsNorm(shape));
  }
  static void CheckLayerNorm(at::IntArrayRef shape, double around = 0) {
    CheckBoth(LayerNormGradWithAdd<kLayerThenOther>, LayerNormGradWithAdd<kOtherThenLayer>, LayerNorm(shape, around));
  }

  // One input after the other does not start at 16 bytes, or is not contiguous: the two are done one after the other,
  // and give the bits that they give then.
  static void CheckOtherAddresses(Handler joined, Handler backward, const KernelCheck& check) {
    Tensors inputs, parameters;
    for (size_t i = 0; i < check.inputs.size(); ++i)
      inputs.push_back(check.inputs[i].to(at::kCUDA, check.wide_inputs.contains(i) ? at::kFloat : at::kBFloat16));
    for (const at::Tensor& parameter : check.parameters) parameters.push_back(OnGpu(parameter));
    const auto gradients = [&] {
      Tensors all;
      for (const at::Tensor& parameter : parameters)
        all.push_back(at::full(parameter.sizes(), 0.5, parameter.options().dtype(at::kFloat)));
      return all;
    };
    const Tensors at_once = Op().Run(joined, inputs, parameters, gradients());
    const size_t last = inputs.size() - 1;
    for (const size_t moved : {size_t{0}, size_t{1}, last}) {
      for (const bool strides : {false, true}) {
        SCOPED_TRACE(testing::Message() << "input " << moved << (strides ? " has strides" : " starts anywhere"));
        Tensors odd = inputs;
        odd[moved] = strides ? inputs[moved].t().contiguous().t() : Shifted(inputs[moved]);
        const Tensors sums = gradients(), expected_sums = gradients();
        const at::Tensor sum = Op().Run(joined, odd, parameters, sums)[0];
        const at::Tensor other = odd[last];
        const Tensors read(odd.begin(), odd.end() - 1);
        const at::Tensor expected =
            Op().Run(ops::RunAdd, {Op().Run(backward, read, parameters, expected_sums)[0], other})[0];
        EXPECT_TRUE(sum.equal(expected));
        EXPECT_LE(NormGap(sum, at_once[0]), 2 * Tolerances().narrow);
        for (size_t i = 0; i < sums.size(); ++i) EXPECT_TRUE(sums[i].equal(expected_sums[i])) << "gradient " << i;
      }
    }
  }
};

// Widths of models, some that fill no warp, and rows around what blocks and teams take at a time.
TEST_F(JoinedNorms, RmsNormOfAnyRows) {
  for (const int64_t width : {1024, 2048, 2688, 4096}) {
    for (const int64_t rows : {1, 2, 3, 37, 793}) CheckRmsNorm({rows, width});
  }
  for (const int64_t width : {8, 96, 264, 3072}) CheckRmsNorm({531, width});
  CheckRmsNorm({1589, 1024});  // blocks take several turns, and not equally many
  CheckRmsNorm({19, 3, 2048});
}

TEST_F(JoinedNorms, LayerNormOfAnyRows) {
  for (const int64_t width : {1024, 2048, 2688, 4096}) {
    for (const int64_t rows : {1, 2, 3, 37, 793}) CheckLayerNorm({rows, width});
  }
  for (const int64_t width : {8, 96, 1152, 1280}) CheckLayerNorm({531, width});
  CheckLayerNorm({1589, 1024}, 16);
  CheckLayerNorm({19, 3, 1024});
}

// The sum of what is rounded already is rounded again.
TEST_F(JoinedNorms, OfOtherWidthsAreTwo) {
  for (const int64_t width : {60, 6144}) {
    KernelCheck rms = RmsNorm({5, width}), layer = LayerNorm({5, width});
    rms.tolerances.narrow = layer.tolerances.narrow = 0.004;
    Check("rms norm", RmsNormGradWithAdd<kRmsThenOther, false>, rms);
    Check("layer norm", LayerNormGradWithAdd<kOtherThenLayer, false>, layer);
  }
}

TEST_F(JoinedNorms, OfOtherAddressesAreTwo) {
  CheckOtherAddresses(RmsNormGradWithAdd<kRmsThenOther>, ops::RunRmsNormGrad, RmsNorm({37, 2048}));
  CheckOtherAddresses(LayerNormGradWithAdd<kLayerThenOther>, ops::RunLayerNormGrad, LayerNorm({37, 1024}));
}

TEST_F(JoinedNorms, NoRowsAddNothing) {
  const at::Tensor x = OnGpu(Random({0, 64})), weight = OnGpu(Random({64})),
                   scale = at::empty({0, 1}, x.options().dtype(at::kFloat)),
                   gradient = at::full({64}, 0.5, x.options().dtype(at::kFloat));
  const Tensors out = Op().Run(RmsNormGradWithAdd<kRmsThenOther>, {x, x, scale, x}, {weight}, {gradient});
  EXPECT_EQ(out[0].sizes(), x.sizes());
  EXPECT_TRUE((gradient == 0.5).all().item<bool>());
}

}  // namespace
}  // namespace planwright::executor
