// Sources that hold parameters in other forms: which form they have, what fits, and what is said where it does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/initial_pieces.h"
#include "planner/state/weights/read_values.h"
#include "tests/numerics/layouts.h"
#include "tests/state/weights/stored_folder.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoredFit : public ::testing::Test {
 protected:
  Plan From(const std::string& name) const {
    return CompiledFile(InSource(kTinyRecipe), {"initialize.from=" + In(name)});
  }
  std::string In(const std::string& name) const { return folder_.path() + "/" + name; }
  WeightsFit FitOf(const RawTensors& tensors) {
    WriteFolder(In("source"), tensors, 1);
    plan_ = From("source");
    return FitWeights(plan_, {}, FusedForms());
  }
  static std::string Problems(const WeightsFit& fit) { return absl::StrJoin(fit.problems, "\n"); }

  TestFolder folder_;
  Plan plan_ = CompiledFile(InSource(kTinyRecipe));
  const RawTensors all_ = TensorsOf(plan_, "BF16");
};

TEST_F(StoredFit, TheFormIsTheOneThatTheSourceHas) {
  for (const auto& [choice, text] :
       std::vector<std::pair<FusedChoice, std::string>>{{{false, false}, "as they are, one by one"},
                                                        {{false, true}, "as they are, stacked"},
                                                        {{true, false}, "renamed, one by one"},
                                                        {{true, true}, "renamed, stacked"}}) {
    WeightsFit fit = FitOf(Fused(all_, plan_, choice));
    EXPECT_EQ(Problems(fit), "") << text;
    EXPECT_THAT(fit.warnings, IsEmpty()) << text;
    int64_t found = 0;
    for (const PartFit& part : fit.parts) {
      found += part.found;
      EXPECT_EQ(part.stored_form, part.part == "language" ? text : "");
    }
    EXPECT_EQ(found, static_cast<int64_t>(all_.size())) << text;
    EXPECT_THAT(ReadAllValues(plan_, fit, 2).problems, IsEmpty()) << text;
  }
}

// Without any form in it, a source is read as ever, also where a dialect has forms.
TEST_F(StoredFit, OneByOneIsNoForm) {
  const WeightsFit fit = FitOf(all_);
  EXPECT_EQ(Problems(fit), "");
  EXPECT_EQ(fit.parts[2].stored_form, "");
  for (const auto& [name, taken] : fit.taken) EXPECT_FALSE(taken.stored) << name;
  EXPECT_EQ(fit.sources[0].stored, nullptr);
}

TEST_F(StoredFit, ALanguageModelAloneMayBeFused) {
  RawTensors alone;
  for (auto& [name, tensor] : Fused(all_, plan_, {false, true})) {
    if (name.starts_with("language_model.")) alone[name.substr(15)] = tensor;
  }
  WriteFolder(In("alone"), alone, 2);
  const Plan plan =
      CompiledFile(InSource(kTinyRecipe), {absl::StrCat("initialize={sources: [{for: language, from: ", In("alone"),
                                                        "}, {for: radio_encoder, from: drawn}]}")});
  const WeightsFit fit = FitWeights(plan, {}, FusedForms());
  EXPECT_EQ(Problems(fit), "");
  EXPECT_EQ(fit.parts[2].form, "language_model.");
  EXPECT_EQ(fit.parts[2].stored_form, "as they are, stacked");
}

TEST_F(StoredFit, WhatIsMissingOrOfAnotherShapeIsToldWithWhatItHolds) {
  RawTensors tensors = Fused(all_, plan_, {false, true});
  const std::string mixer = "language_model.backbone.layers.2.mixer.";
  ASSERT_EQ(tensors.erase(mixer + "qkv.weight"), 1);
  RawTensor& o = tensors.at(mixer + "o_proj.weight");
  o.shape = {o.shape[0] * 2, o.shape[1] / 2};
  const std::string experts = [&] {
    for (const auto& [name, tensor] : tensors) {
      if (name.ends_with(".experts.up")) return name;
    }
    return std::string();
  }();
  tensors.at(experts).type = "F8_E4M3";
  tensors.at(experts).bytes.resize(tensors.at(experts).bytes.size() / 2);
  tensors["language_model.more"] = Numbers("F32", {2}, [](int64_t) { return 1; });
  const WeightsFit fit = FitOf(tensors);
  const int64_t count = plan_.modules[1].experts() + plan_.modules[0].experts();
  EXPECT_EQ(fit.parts[2].missing, 3);
  EXPECT_EQ(fit.parts[2].unfit, 1 + count);
  EXPECT_THAT(
      Problems(fit),
      AllOf(HasSubstr("missing: " + mixer + "qkv.weight ["),
            HasSubstr("], which holds " + mixer + "q_proj.weight, " + mixer + "k_proj.weight, " + mixer +
                      "v_proj.weight"),
            HasSubstr("shape: " + mixer + "o_proj.weight is ["), HasSubstr("], which holds " + mixer + "o_proj.weight"),
            HasSubstr("type: " + experts + " is F8_E4M3"), HasSubstr("left over: language_model.more [2]")));
}

// `each` by a number that does not divide is a mistake of the dialect, with its place.
TEST_F(StoredFit, ALineThatDoesNotFitTheModelIsRefused) {
  WriteFolder(In("source"), Fused(all_, plan_, {}), 1);
  const Plan plan = From("source");
  const KindForms forms =
      FormsOf(DialectsWith("nemotron_h", "my.model",
                           "tensor language_model.backbone.layers.{layer}.mixer.qkv.weight =\n"
                           "    mixer.q_proj.weight + mixer.k_proj.weight + mixer.v_proj.weight along 0 each 7\n"));
  const WeightsFit fit = FitWeights(plan, {}, forms);
  EXPECT_THAT(fit.problems, ::testing::Contains(AllOf(HasSubstr("my.model:2:5: "), HasSubstr("7 does not divide"))));
}

TEST_F(StoredFit, NumbersThatAreNoneAreToldOfTheirPart) {
  RawTensors tensors = Fused(TensorsOf(plan_, "F32"), plan_, {true, true});
  RawTensor& qkv = tensors.at("model.blocks.2.mix.qkv.weight");
  const float nan = std::nanf("");
  // The last row is the last of v.
  qkv.bytes.replace(qkv.bytes.size() - 4, 4, reinterpret_cast<const char*>(&nan), 4);
  WeightsFit fit = FitOf(tensors);
  ASSERT_EQ(Problems(fit), "");
  const int64_t last = ElementsOf(all_.at("language_model.backbone.layers.2.mixer.v_proj.weight").shape) - 1;
  EXPECT_THAT(ReadAllValues(plan_, fit, 1).problems,
              ElementsAre(AllOf(HasSubstr("tensor model.blocks.2.mix.qkv.weight, part language.backbone.layers.2.mixer."
                                          "v_proj.weight: element " +
                                          std::to_string(last)),
                                HasSubstr("infinite or no number"))));
}

TEST_F(StoredFit, ATensorOfTwoPartsIsNamedOnce) {
  WriteFolder(In("source"), Fused(all_, plan_, {}), 1);
  const Plan plan = CompiledFile(
      InSource(kTinyRecipe),
      {absl::StrCat("initialize={sources: [{for: language, from: ", In("source"), "}, {for: radio_encoder.projection, ",
                    "from: ", In("source"), "}, {for: radio_encoder.backbone, from: drawn}]}")});
  // The tensors of the backbone are known by their names in files, also in another form.
  const WeightsFit fit = FitWeights(plan, {}, FusedForms());
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(fit.sources[0].elsewhere, ::testing::Contains("vision_model.patches"));
  EXPECT_THAT(fit.warnings, IsEmpty());
}

}  // namespace
}  // namespace planwright::testing
