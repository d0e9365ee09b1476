// Which instructions take a fast form, and which pairs one for both, by their planned types. No test here needs a GPU.
#include "executor/ops/forms.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/joined_forms.h"
#include "planner/plan/op_table.h"

namespace planwright::executor {
namespace {

using Choice = ComputeForm::Choice;

// The choice on a GPU. Types are texts of plan files.
Choice ChoiceOf(OpKind kind, const std::vector<std::string>& types, const Attributes& attributes = {},
                const Tensors& parameters = {}, const Tensors& gradients = {}) {
  Instruction instruction;
  instruction.kind = kind, instruction.attributes = attributes;
  std::vector<ValueType> read;
  for (const std::string& text : types) read.push_back(TypeFromText(text).value());
  ComputeBinding binding{instruction, nullptr, at::Device(at::kCUDA, 0), {}, parameters, gradients};
  for (const ValueType& type : read) binding.inputs.push_back(&type);
  const ComputeForm form = ChooseForm(binding);
  EXPECT_EQ(form.run == PlainFormOf(kind), form.choice != Choice::kFast);
  return form.choice;
}

at::Tensor Weight(at::IntArrayRef shape, at::ScalarType dtype = at::kBFloat16) { return at::empty(shape, dtype); }

TEST(FastForms, TheTableOfOperationsAndThatOfTheExecutorAreOne) {
  for (const OpInfo& info : AllOps())
    EXPECT_EQ(ops::FindFastForm(info.kind) != nullptr, !info.fast.empty()) << info.name;
}

TEST(FastForms, TakeBf16OfWidthsOfWholeVectors) {
  const auto norm = [](const std::string& type, int64_t width, at::ScalarType dtype = at::kBFloat16) {
    return ChoiceOf(OpKind::kRmsNorm, {type}, {}, {Weight({width}, dtype)});
  };
  EXPECT_EQ(norm("bf16[24,1,64]", 64), Choice::kFast);
  EXPECT_EQ(norm("bf16[rows,64]", 64), Choice::kFast);  // any number of rows
  EXPECT_EQ(norm("bf16[24,1,60]", 60), Choice::kPlain);
  EXPECT_EQ(norm("bf16[24,1,width]", 64), Choice::kPlain);  // known too late
  EXPECT_EQ(norm("bf16[24,1,8192]", 8192), Choice::kPlain);
  EXPECT_EQ(norm("fp32[24,1,64]", 64, at::kFloat), Choice::kPlain);
  EXPECT_EQ(norm("bf16[24,1,64]", 64, at::kFloat), Choice::kPlain);
}

TEST(FastForms, StatisticsOfABackwardAreFp32) {
  const auto norm = [](const std::string& scale) {
    return ChoiceOf(OpKind::kRmsNormGrad, {"bf16[24,1,64]", "bf16[24,1,64]", scale}, {}, {Weight({64})});
  };
  EXPECT_EQ(norm("fp32[24,1,1]"), Choice::kFast);
  EXPECT_EQ(norm("bf16[24,1,1]"), Choice::kPlain);
}

TEST(FastForms, OneKernelAddsThree) {
  const std::string x = "bf16[24,1,30]";
  EXPECT_EQ(ChoiceOf(OpKind::kAdd, {x, x, x}), Choice::kFast);
  EXPECT_EQ(ChoiceOf(OpKind::kAdd, {x, x}), Choice::kPlain);
  EXPECT_EQ(ChoiceOf(OpKind::kAdd, {x, x, "fp32[24,1,30]"}), Choice::kPlain);
}

TEST(FastForms, ExpertsTakeEveryPrecision) {
  for (const char* dtype : {"bf16", "fp32", "fp64"}) {
    EXPECT_EQ(ChoiceOf(OpKind::kExperts, {std::string(dtype) + "[rows,24]", "fp32[rows]", "int64[4]"}), Choice::kFast);
    EXPECT_EQ(ChoiceOf(OpKind::kRoutingFingerprint, {"int64[24,2]"}), Choice::kFast);
  }
}

TEST(FastForms, HeadsAndGatesAreWholeVectors) {
  const auto rope = [](int64_t head_dim, int64_t rotary, const std::string& dtype = "bf16") {
    return ChoiceOf(OpKind::kRope, {dtype + "[24,1,256]", "int64[1,24,1]"},
                    {{"head_dim", head_dim}, {"rotary", rotary}});
  };
  EXPECT_EQ(rope(128, 128), Choice::kFast);
  EXPECT_EQ(rope(24, 16), Choice::kFast);
  EXPECT_EQ(rope(24, 24), Choice::kPlain);  // half of it is no whole vector
  EXPECT_EQ(rope(12, 0), Choice::kPlain);
  EXPECT_EQ(rope(264, 256), Choice::kPlain);
  EXPECT_EQ(rope(128, 128, "fp32"), Choice::kPlain);

  const auto axial = [](int64_t head_dim) {
    return ChoiceOf(OpKind::kAxialRope, {"bf16[patches,432]", "int64[2,2] host"}, {{"head_dim", head_dim}});
  };
  EXPECT_EQ(axial(64), Choice::kFast);
  EXPECT_EQ(axial(72), Choice::kPlain);  // half of it is no whole vector

  const auto norm = [](const std::string& scale, at::ScalarType dtype = at::kBFloat16) {
    return ChoiceOf(OpKind::kHeadNormGrad, {"bf16[24,1,256]", "bf16[24,1,256]", scale}, {{"head_dim", int64_t{64}}},
                    {Weight({64}, dtype), Weight({64}, dtype)});
  };
  EXPECT_EQ(norm("fp32[24,1,3]"), Choice::kFast);
  EXPECT_EQ(norm("bf16[24,1,3]"), Choice::kPlain);
  EXPECT_EQ(norm("fp32[24,1,3]", at::kFloat), Choice::kPlain);

  for (const int64_t width : {128, 20}) {
    const std::string type = "bf16[rows," + std::to_string(2 * width) + "]";
    EXPECT_EQ(ChoiceOf(OpKind::kGatedSilu, {type}, {{"width", width}}), width == 128 ? Choice::kFast : Choice::kPlain);
  }
}

TEST(FastForms, AttentionHasHeadsThatItsKernelsHave) {
  const std::string qkv = "bf16[24,1,480]", a = "bf16[24,1,240]";
  for (const auto& [head_dim, fits] :
       std::vector<std::pair<int64_t, bool>>{{80, true}, {256, true}, {10, false}, {264, false}}) {
    const Choice choice = fits ? Choice::kFast : Choice::kPlain;
    const Attributes attributes = {{"head_dim", head_dim}};
    EXPECT_EQ(ChoiceOf(OpKind::kCausalAttention, {qkv}, attributes), choice) << head_dim;
    EXPECT_EQ(ChoiceOf(OpKind::kCausalAttentionGrad, {a, qkv, a, "fp32[1,3,24]"}, attributes), choice) << head_dim;
    EXPECT_EQ(ChoiceOf(OpKind::kCausalAttentionAllKv, {a, qkv}, attributes), choice) << head_dim;
    EXPECT_EQ(ChoiceOf(OpKind::kPackedAttention, {"bf16[tokens,480]", "int64[2,2] host"}, attributes), choice)
        << head_dim;
  }
}

TEST(FastForms, AKindWithoutOneHasOneForm) {
  EXPECT_EQ(ChoiceOf(OpKind::kGelu, {"bf16[24,1,64]"}), Choice::kOnly);
  EXPECT_EQ(ChoiceOf(OpKind::kLinear, {"bf16[24,1,64]"}, {}, {Weight({8, 64})}), Choice::kOnly);
}

// Whether a norm and a rope are done at once, forward and backward. No two of a list have other heads, but a plan that
// someone has written may.
TEST(JoinedForms, OfHeadsAreThoseThatBothKernelsTake) {
  const auto joined = [](int64_t heads_of_norm, int64_t rotary, const std::string& scale = "fp32[24,1,3]") {
    Instruction norm, rope;
    norm.attributes = {
        {"q_heads", heads_of_norm}, {"k_heads", int64_t{1}}, {"v_heads", int64_t{1}}, {"head_dim", int64_t{64}}};
    rope.attributes = {{"q_heads", int64_t{2}},
                       {"k_heads", int64_t{1}},
                       {"v_heads", int64_t{1}},
                       {"head_dim", int64_t{64}},
                       {"rotary", rotary}};
    const ValueType x = TypeFromText("bf16[24,1,256]").value(), positions = TypeFromText("int64[1,24,1]").value(),
                    scales = TypeFromText(scale).value();
    const Tensors weights = {Weight({64}), Weight({64})}, none;
    const at::Device gpu(at::kCUDA, 0);
    const auto form = [&](OpKind first, OpKind second) {
      const bool forward = first == OpKind::kHeadNorm;
      (forward ? norm : rope).kind = first, (forward ? rope : norm).kind = second;
      const ComputeBinding of_norm{norm,    nullptr, gpu, forward ? std::vector{&x} : std::vector{&x, &x, &scales},
                                   weights, none},
          of_rope{rope, nullptr, gpu, {&x, &positions}, none, none};
      return (forward ? ChooseJoinedForm(of_norm, of_rope) : ChooseJoinedForm(of_rope, of_norm)) != nullptr;
    };
    return std::pair(form(OpKind::kHeadNorm, OpKind::kRope), form(OpKind::kRopeGrad, OpKind::kHeadNormGrad));
  };
  EXPECT_EQ(joined(2, 64), std::pair(true, true));
  EXPECT_EQ(joined(2, 32), std::pair(true, true));
  EXPECT_EQ(joined(2, 24), std::pair(false, false));
  EXPECT_EQ(joined(3, 64), std::pair(false, false));
  EXPECT_EQ(joined(2, 64, "bf16[24,1,3]"), std::pair(true, false));
}

}  // namespace
}  // namespace planwright::executor
