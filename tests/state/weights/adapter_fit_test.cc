// Adapters of files against a plan: which config is read, and whose tensors they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/state/weights/adapter_folder.h"
#include "planner/state/weights/fit.h"
#include "tests/state/weights/published.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kConfig[] = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "v_proj"]})";

// A Llama with adapters of rank 2 and alpha 4, whose source is `from`.
Plan Adapted(const std::string& from, const std::string& alpha = "4") {
  return CompiledFile(
      InSource("recipes/llama_tiny.yaml"),
      {"modules.language.train.backbone=frozen",
       "modules.language.adapter={rank: 2, alpha: " + alpha + ", targets: [q_proj, v_proj]}",
       "initialize={sources: [{for: language, from: drawn}, {for: language.adapter, from: " + from + "}]}"});
}

class AdapterFit : public ::testing::Test {
 protected:
  std::string In(const std::string& name) const { return folder_.path() + "/" + name; }

  // The tensors of the plan's adapters, with `begin` in the place of "model." before the layers.
  static RawTensors Adapters(const std::string& begin) {
    RawTensors tensors;
    for (const auto& [name, tensor] : TensorsOf(Adapted("drawn"), "F32")) {
      if (name.find(".lora_") != std::string::npos) tensors[begin + std::string(LayerTail(name))] = tensor;
    }
    return tensors;
  }
  // A folder as PEFT writes it.
  std::string Folder(const std::string& name, const RawTensors& tensors, const std::string& config) const {
    std::filesystem::create_directories(In(name));
    WriteText(In(name) + "/adapter_model.safetensors", FileOf(tensors));
    WriteText(In(name) + "/adapter_config.json", config);
    return In(name);
  }
  static std::string Problems(const WeightsFit& fit) { return absl::StrJoin(fit.problems, "\n"); }

  TestFolder folder_;
  const RawTensors peft_ = Adapters("base_model.model.model.");
};

TEST_F(AdapterFit, TakesAllOfAFolder) {
  const WeightsFit fit = FitWeights(Adapted(Folder("tuned", peft_, kConfig)));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(fit.warnings, IsEmpty());
  EXPECT_EQ(fit.taken.size(), peft_.size());
}

TEST_F(AdapterFit, AnEmptyConfigIsNone) {
  const std::string folder = Folder("tuned", peft_, "");
  EXPECT_THAT(FitWeights(Adapted(folder)).problems,
              ElementsAre(HasSubstr(folder + ": adapter_config.json cannot be read: ")));
}

TEST_F(AdapterFit, TargetsWithoutTensorsAreTold) {
  const std::string config =
      R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["k_proj", "q_proj", "v_proj", "proj"]})";
  const std::string folder = Folder("tuned", peft_, config);
  const WeightsFit fit = FitWeights(Adapted(folder));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(fit.warnings,
              ElementsAre(folder + ": target_modules of adapter_config.json names k_proj, proj, of which there is "
                                   "no tensor"));
}

TEST_F(AdapterFit, TheConfigBesideAFileIsRead) {
  const std::string file = Folder("tuned", peft_, kConfig) + "/adapter_model.safetensors";
  EXPECT_EQ(Problems(FitWeights(Adapted(file))), "");
  EXPECT_THAT(FitWeights(Adapted(file, "32")).problems,
              ElementsAre(file + ": adapter_config.json: lora_alpha = 4, and the module's alpha is 32"));
}

// What PEFT and transformers put in front of the layers.
TEST_F(AdapterFit, BeginningsOfProgramsAreKnown) {
  for (const char* begin : {"base_model.model.model.", "base_model.model.language_model.model.", "", "model.",
                            "base_model.model.model.language_model."}) {
    const WeightsFit fit = FitWeights(Adapted(Folder("tuned", Adapters(begin), kConfig)));
    EXPECT_EQ(Problems(fit), "") << begin;
    EXPECT_THAT(fit.warnings, IsEmpty()) << begin;
  }
}

TEST_F(AdapterFit, AdaptersOfAnotherModuleAreRefused) {
  const std::string folder = Folder("tower", Adapters("base_model.model.vision_model."), kConfig);
  EXPECT_THAT(FitWeights(Adapted(folder)).problems,
              ElementsAre(AllOf(HasSubstr(folder + " has none of the 8 tensors of language.adapter, such as "),
                                HasSubstr(", and base_model.model.vision_model. is of another module: name another "
                                          "source for language.adapter"))));
}

// A file with adapters of both: those of the tower are left over.
TEST_F(AdapterFit, OfTwoModulesEachHasItsOwn) {
  RawTensors both = Adapters("base_model.model.a_vision_tower.visual.");
  both.insert(peft_.begin(), peft_.end());
  const WeightsFit fit = FitWeights(Adapted(Folder("both", both, kConfig)));
  EXPECT_EQ(fit.taken.size(), 8U);
  for (const auto& [name, taken] : fit.taken)
    EXPECT_TRUE(taken.key.starts_with("base_model.model.model.")) << taken.key;
  EXPECT_THAT(fit.problems, Each(HasSubstr("left over: base_model.model.a_vision_tower.visual.layers.")));
  EXPECT_FALSE(fit.fits());
}

TEST_F(AdapterFit, OtherWordsAreTold) {
  const std::string folder = Folder("tuned", Adapters("base_model.model.critic."), kConfig);
  const WeightsFit fit = FitWeights(Adapted(folder));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(
      fit.warnings,
      ElementsAre(folder + ": names begin with base_model.model.critic., which is no beginning that PEFT is known "
                           "to write for language: they are taken for its adapters"));
}

TEST_F(AdapterFit, NamesOfAStateDictAreToldAsSuch) {
  RawTensors raw;
  for (const auto& [name, tensor] : peft_) raw[name.substr(0, name.rfind('.')) + ".default.weight"] = tensor;
  EXPECT_THAT(FitWeights(Adapted(Folder("raw", raw, kConfig))).problems,
              ElementsAre(HasSubstr(": names have `.default.`, the name of an adapter in a state_dict of PEFT: "
                                    "save_pretrained(FOLDER) in Python writes them without it")));
}

TEST_F(AdapterFit, AFileAloneSaysNothingOfAlpha) {
  const std::string file = In("alone.safetensors");
  WriteText(file, FileOf(peft_));
  const WeightsFit fit = FitWeights(Adapted(file));
  EXPECT_EQ(Problems(fit), "");
  EXPECT_THAT(fit.warnings, ElementsAre(file + " has no adapter_config.json beside it: alpha is 4 as in the recipe"));
}

}  // namespace
}  // namespace planwright::testing
