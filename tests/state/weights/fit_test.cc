// Which source has which tensors of a plan: names of whole models and of models alone, sources of each part, tensors
// that are passed through, and larger vocabularies.
#include "planner/state/weights/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/pixel_norm.h"
#include "planner/plan/plan_json.h"
#include "planner/state/weights/read_values.h"
#include "tests/numerics/layouts.h"
#include "tests/state/weights/published.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

Plan Tiny(const std::vector<std::string>& overrides = {}) { return CompiledFile(InSource(kTinyRecipe), overrides); }

// The tensors whose names begin with `begin`, without it.
RawTensors Alone(const RawTensors& tensors, const std::string& begin, const std::string& instead = "") {
  RawTensors some;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(begin)) some[instead + name.substr(begin.size())] = tensor;
  }
  return some;
}

class Fit : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return folder_.path() + "/" + name; }
  // One override for a list of {for, from}.
  std::string Sources(const std::vector<std::pair<std::string, std::string>>& sources) const {
    std::vector<std::string> items;
    for (const auto& [part, from] : sources)
      items.push_back(absl::StrCat("{for: ", part, ", from: ", from == kDrawn ? from : In(from), "}"));
    return absl::StrCat("initialize={sources: [", absl::StrJoin(items, ", "), "]}");
  }
  static std::string Problems(const WeightsFit& fit) { return absl::StrJoin(fit.problems, "\n"); }

  TestFolder folder_;
  const RawTensors all_ = TensorsOf(Tiny(), "BF16");
};

TEST_F(Fit, AFolderAFileAndLinksToThem) {
  WriteFolder(In("many"), all_, 3);
  WriteFolder(In("one"), all_, 1);
  WriteText(In("alone.safetensors"), FileOf(all_));
  // As in the cache of a hub: a folder of links to files elsewhere.
  fs::create_directories(In("blobs"));
  fs::create_directories(In("snapshot"));
  for (const fs::directory_entry& entry : fs::directory_iterator(In("many"))) {
    const std::string name = entry.path().filename();
    fs::copy_file(entry.path(), In("blobs/" + std::to_string(std::hash<std::string>()(name))));
    fs::create_symlink("../blobs/" + std::to_string(std::hash<std::string>()(name)), In("snapshot/" + name));
  }
  fs::create_directory_symlink("snapshot", In("link"));
  for (const char* name : {"many", "many/model.safetensors.index.json", "one", "one/model.safetensors",
                           "alone.safetensors", "snapshot", "link"}) {
    WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In(name)}));
    EXPECT_EQ(Problems(fit), "") << name;
    EXPECT_THAT(fit.warnings, IsEmpty()) << name;
    ASSERT_THAT(fit.parts, SizeIs(3));
    int64_t found = 0;
    for (const PartFit& part : fit.parts) found += part.found;
    EXPECT_EQ(found, static_cast<int64_t>(all_.size()));
    EXPECT_EQ(fit.parts[0].form, "");
  }
}

TEST_F(Fit, EachPartMayHaveItsSource) {
  RawTensors nano = Alone(all_, "language_model."), radio = Alone(all_, "vision_model.");
  nano["mtp.layers.0.norm.weight"] = radio["radio_model.summary_idxs"] = {"I64", {2}, std::string(16, '\0')};
  radio["radio_model.input_conditioner.norm_mean"] =
      Numbers("F32", {3, 1, 1}, [](int64_t i) { return kClipNorm.mean.at(i); });
  radio["radio_model.input_conditioner.norm_std"] =
      Numbers("F32", {3, 1, 1}, [](int64_t i) { return kClipNorm.deviation.at(i); });
  radio["radio_model.model.patch_generator.video_embedder.weight"] =
      Numbers("BF16", {32, 96}, [](int64_t) { return 1; });
  radio["radio_model.model.blocks.1.layer_scale1.lambda1"] = Numbers("BF16", {32}, [](int64_t) { return 1; });
  WriteFolder(In("nano"), nano, 2);
  WriteFolder(In("radio"), radio, 1);
  const Plan plan = Tiny(
      {Sources({{"language", "nano"}, {"radio_encoder.backbone", "radio"}, {"radio_encoder.projection", kDrawn}})});
  WeightsFit fit = FitWeights(plan);
  ASSERT_EQ(Problems(fit), "");
  ASSERT_THAT(fit.parts, SizeIs(3));
  EXPECT_EQ(fit.parts[0].part, "radio_encoder.backbone");
  EXPECT_EQ(fit.parts[0].form, "vision_model.");
  EXPECT_EQ(fit.parts[1].part, "radio_encoder.projection");
  EXPECT_EQ(fit.parts[1].source, -1);
  EXPECT_EQ(fit.parts[1].tensors, 3);
  EXPECT_EQ(fit.parts[2].form, "language_model.");
  ASSERT_THAT(fit.sources, SizeIs(2));
  std::vector<std::string> passed;
  for (const SourceFit& source : fit.sources) {
    for (const PassedThrough& one : source.passed) passed.insert(passed.end(), one.names.begin(), one.names.end());
  }
  EXPECT_THAT(passed,
              UnorderedElementsAre("mtp.layers.0.norm.weight", "radio_model.summary_idxs",
                                   "radio_model.input_conditioner.norm_mean", "radio_model.input_conditioner.norm_std",
                                   "radio_model.model.patch_generator.video_embedder.weight",
                                   "radio_model.model.blocks.1.layer_scale1.lambda1"));
  EXPECT_EQ(fit.taken.at("language.lm_head.weight").key, "lm_head.weight");
  EXPECT_EQ(fit.taken.at("radio_encoder.radio_model.model.blocks.0.norm1.weight").key,
            "radio_model.model.blocks.0.norm1.weight");
  EXPECT_FALSE(fit.taken.contains("radio_encoder.mlp1.0.weight"));
  EXPECT_THAT(WrongExtras(fit), IsEmpty());
  // The plan's file has the sources, and the frozen parts are those of the plan.
  const absl::StatusOr<Plan> read = ReadPlan(WritePlan(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->initialize->sources.size(), 3U);
  EXPECT_EQ(Problems(FitWeights(*read)), "");
}

// Of a type with few digits, the nearest numbers are CLIP's.
TEST_F(Fit, NormalizationMayBeRoundedToTheTypeOfTheFile) {
  RawTensors tensors = all_;
  const std::string norm = "vision_model.radio_model.input_conditioner.norm_";
  const auto nearest = [](double number, double step) { return std::round(number / step) * step; };
  tensors[norm + "mean"] = Numbers("BF16", {3, 1, 1}, [&](int64_t i) { return nearest(kClipNorm.mean.at(i), 0x1p-9); });
  tensors[norm + "std"] =
      Numbers("F16", {3, 1, 1}, [&](int64_t i) { return nearest(kClipNorm.deviation.at(i), 0x1p-12); });
  WriteFolder(In("omni"), tensors, 1);
  WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In("omni")}));
  ASSERT_EQ(Problems(fit), "");
  EXPECT_THAT(WrongExtras(fit), IsEmpty());
}

TEST_F(Fit, TwoEncodersOfTheSameTensorsAreWarnedOf) {
  WriteFolder(In("omni"), all_, 1);
  WriteFolder(In("radio"), all_, 1);
  const auto warnings = [&](const std::string& from) {
    const WeightsFit fit = FitWeights(CompiledFile(InSource("recipes/nemotron_moe_two_encoders_tiny.yaml"),
                                                   {"modules.fine_encoder.model=radio_vit_tiny", from}));
    EXPECT_EQ(Problems(fit), "");
    return fit.warnings;
  };
  EXPECT_THAT(warnings("initialize.from=" + In("omni")),
              ElementsAre("radio_encoder.backbone and fine_encoder.backbone begin with the same tensors of " +
                              In("omni") + ", such as vision_model.radio_model.model.patch_generator.embedder.weight",
                          "radio_encoder.projection and fine_encoder.projection begin with the same tensors of " +
                              In("omni") + ", such as mlp1.0.weight"));
  EXPECT_THAT(warnings(Sources({{"radio_encoder", "omni"}, {"language", "omni"}, {"fine_encoder", "radio"}})),
              IsEmpty());
}

// What the projection of a plan is must be what train.projection means.
TEST_F(Fit, PartsAreThoseThatAreTrainedApart) {
  const Plan plan = Tiny({"modules.radio_encoder.train={backbone: frozen, projection: trained}"});
  for (const WeightPart& part : PartsOf(plan)) {
    for (int index : part.parameters) {
      const Parameter& parameter = part.module->parameters[static_cast<size_t>(index)];
      EXPECT_EQ(parameter.trained || parameter.buffer, part.name != "radio_encoder.backbone") << parameter.name;
    }
  }
}

TEST_F(Fit, OneFolderForOnePartAndAnotherForTheRest) {
  WriteFolder(In("omni"), all_, 2);
  WriteFolder(In("radio"), Alone(all_, "vision_model."), 1);
  WeightsFit fit = FitWeights(Tiny(
      {Sources({{"language", "omni"}, {"radio_encoder.projection", "omni"}, {"radio_encoder.backbone", "radio"}})}));
  EXPECT_EQ(Problems(fit), "");
  ASSERT_THAT(fit.sources, SizeIs(2));
  // The backbone of the first folder is not taken, which is told and no error.
  const size_t omni = fit.sources[0].named == In("omni") ? 0 : 1;
  EXPECT_EQ(fit.sources[omni].elsewhere.size(), Alone(all_, "vision_model.").size());
  EXPECT_THAT(fit.sources[1 - omni].elsewhere, IsEmpty());
}

TEST_F(Fit, NamesOfTheFinalNormMayBeThoseOfOthers) {
  RawTensors omni = all_;
  for (const char* end : {"weight", "bias"}) {
    auto node = omni.extract(std::string("vision_model.final_norm.") + end);
    ASSERT_FALSE(node.empty());
    node.key() = std::string("vision_final_layernorm.") + end;
    omni.insert(std::move(node));
  }
  WriteFolder(In("omni"), omni, 1);
  WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In("omni")}));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_EQ(fit.taken.at("radio_encoder.final_norm.bias").key, "vision_final_layernorm.bias");
}

TEST_F(Fit, ALargerVocabularyDrawsRows) {
  WriteFolder(In("omni"), all_, 2);
  WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In("omni"), "models.hybrid_moe_tiny.vocabulary=260"}));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(fit.warnings,
              ElementsAre("language_model.backbone.embeddings.weight has 256 rows, and the model's vocabulary is 260: "
                          "rows 256 to 259 are drawn",
                          "language_model.lm_head.weight has 256 rows, and the model's vocabulary is 260: rows 256 to "
                          "259 are drawn"));
  EXPECT_EQ(fit.taken.at("language.lm_head.weight").elements, 256 * 64);
}

TEST_F(Fit, WhatIsIgnoredIsListed) {
  RawTensors tensors = all_;
  for (int i = 0; i < 3; ++i) tensors["teacher." + std::to_string(i)] = Numbers("F32", {2}, [](int64_t) { return 1; });
  WriteFolder(In("omni"), tensors, 1);
  WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In("omni"), "initialize.ignore=[teacher.*, other]"}));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(fit.sources[0].ignored, ElementsAre("teacher.0", "teacher.1", "teacher.2"));
  EXPECT_THAT(fit.warnings, ElementsAre("initialize.ignore has other, and no source has such a tensor unused"));
}

// Where a pattern is misspelt, what it was for is left over: both are told.
TEST_F(Fit, APatternThatMatchesNothingIsToldBesideWhatIsLeftOver) {
  RawTensors tensors = all_;
  tensors["teacher.0"] = Numbers("F32", {2}, [](int64_t) { return 1; });
  WriteFolder(In("omni"), tensors, 1);
  const WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In("omni"), "initialize.ignore=[teachers.*]"}));
  EXPECT_THAT(Problems(fit), HasSubstr("left over: teacher.0"));
  EXPECT_THAT(fit.warnings, ElementsAre("initialize.ignore has teachers.*, and no source has such a tensor unused"));
  // Nothing is known of the tensors of a source that cannot be opened.
  const WeightsFit none = FitWeights(Tiny({"initialize.from=" + In("none"), "initialize.ignore=[teachers.*]"}));
  EXPECT_THAT(none.warnings, IsEmpty());
}

TEST_F(Fit, StrangeFoldersAreWarnedOf) {
  WriteFolder(In("omni"), all_, 2);
  WriteText(In("omni/model-00001-of-00003.safetensors"), "");
  WriteText(In("omni/config.json"), "[]");
  const std::string index = In("omni/model.safetensors.index.json");
  std::string text = ReadText(index);
  text.replace(text.find("\"total_size\": "), 14, "\"total_size\": 1");
  WriteText(index, text);
  WeightsFit fit = FitWeights(Tiny({"initialize.from=" + In("omni")}));
  EXPECT_EQ(Problems(fit), "");
  ASSERT_THAT(fit.warnings, SizeIs(3));
  EXPECT_THAT(fit.warnings[0], HasSubstr("the index does not name model-00001-of-00003.safetensors"));
  EXPECT_THAT(fit.warnings[1], HasSubstr("config.json is no JSON object"));
  EXPECT_THAT(fit.warnings[2], HasSubstr("the index says total_size 1"));
}

TEST_F(Fit, ZeroRowsOfTheEmbeddingAreListed) {
  RawTensors tensors = all_;
  const auto zero = [](int64_t row) { return row == 3 || row == 11 || row == 12 || row == 255; };
  tensors["language_model.backbone.embeddings.weight"] =
      Numbers("BF16", {256, 64}, [&](int64_t i) { return zero(i / 64) ? -0.0 : 1; });
  WriteFolder(In("omni"), tensors, 1);
  const Plan plan = Tiny({"initialize.from=" + In("omni")});
  WeightsFit fit = FitWeights(plan);
  ASSERT_EQ(Problems(fit), "");
  const WeightValues values = ReadAllValues(plan, fit, 2);
  EXPECT_THAT(values.problems, IsEmpty());
  EXPECT_THAT(values.warnings,
              ElementsAre("language_model.backbone.embeddings.weight: 4 rows are zero: 3, 11 to 12, 255 (training on "
                          "these tokens may give infinite gradients)"));
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.bytes.size());
  EXPECT_EQ(values.bytes, bytes);
}

// Plans of before name one source, and their digests stay.
TEST_F(Fit, APlanWithOneSourceIsWrittenAsBefore) {
  EXPECT_THAT(WritePlan(Tiny({"initialize.from=w.safetensors"})),
              AllOf(HasSubstr("\n \"initialize\": {\"from\":\"w.safetensors\",\"base\":"), Not(HasSubstr("sources"))));
}

// A plan may come from anywhere, and say anything.
TEST_F(Fit, SourcesOfAPlanAreChecked) {
  Plan plan = Tiny({Sources({{"language", "a"}, {"radio_encoder", kDrawn}})});
  plan.initialize->sources = {{"language", "a", ""},
                              {"language", "b", ""},
                              {"radio_encoder.backbone", "c", ""},
                              {"radio_encoder.head", "d", ""}};
  EXPECT_EQ(Problems(FitWeights(plan)),
            "initialize.sources does not fit the plan:\n  radio_encoder.projection has no source\n  language has more "
            "than one source\n  there is no module or part radio_encoder.head");
}

}  // namespace
}  // namespace planwright::testing
