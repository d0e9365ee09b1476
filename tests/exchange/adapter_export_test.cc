// Adapters that leave a run: a folder of PEFT says nothing of the model, and what is told is of what leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "planner/exchange/export_run.h"
#include "planner/state/checkpoint/run_lives.h"
#include "tests/exchange/toy_folder.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"

namespace planwright {
namespace {

using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

const Words kLanguage = {"modules.language.train.backbone=frozen",
                         "modules.language.adapter={rank: 3, alpha: 6.0, targets: [in_proj, q_proj]}"};
const Words kEncoder = {"modules.radio_encoder.train.backbone=frozen",
                        "modules.radio_encoder.adapter={rank: 2, alpha: 4.0, targets: [attn.qkv, fc2]}"};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Plan Tiny(const Words& overrides) {
  return testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), overrides);
}

class AdapterExport : public testing::FolderTest {
 protected:
  // A run in a folder of its own, and what it exports.
  ExportRequest RunOf(const std::string& name, const Plan& plan,
                      const std::map<std::string, std::string>& base = {}) const {
    EXPECT_EQ(*TakeLife(In(name)), 1);
    EXPECT_TRUE(WriteLifeStart(In(name), 1, testing::StartOf(plan)).ok());
    testing::WriteCheckpointOf(plan, In(name), 4, 1, base);
    return {.from = In(name), .to = In(name + "_out")};
  }
  static ExportedRun Exported(const ExportRequest& request) {
    absl::StatusOr<ExportedRun> exported = ExportRun(request, {});
    EXPECT_TRUE(exported.ok()) << exported.status();
    return exported.ok() ? *std::move(exported) : ExportedRun{};
  }
  static ordered_json ConfigIn(const std::string& folder) {
    std::ifstream file(folder + "/adapter_config.json");
    return ordered_json::parse(file);
  }
};

// This encoder has a norm that no config.json of its dialect can say.
TEST_F(AdapterExport, NothingOfTheModelNeedsToBeSaid) {
  ExportRequest request = RunOf("run", Tiny(kEncoder + kLanguage));
  request.module = "radio_encoder";
  const ExportedRun exported = Exported(request);
  EXPECT_THAT(exported.findings.problems, IsEmpty());
  EXPECT_THAT(exported.copied, IsEmpty());
  EXPECT_EQ(ConfigIn(request.to)["target_modules"], ordered_json({"attn.qkv", "mlp.fc2"}));
  EXPECT_FALSE(std::filesystem::exists(request.to + "/config.json"));
}

// Not what is frozen, though a checkpoint has it: the encoder's backbone beside a projector that learns.
TEST_F(AdapterExport, WhatIsLeftBehindIsWhatTheRunTrains) {
  const ExportedRun exported =
      Exported(RunOf("run", Tiny(kLanguage + Words{"modules.radio_encoder.train.backbone=frozen"})));
  EXPECT_THAT(exported.findings.problems, IsEmpty());
  EXPECT_THAT(exported.findings.notes,
              ElementsAre(HasSubstr("left behind: 3 tensors that the run trains beside adapters, such as mlp1.")));
}

TEST_F(AdapterExport, OneFileHasNoShards) {
  ExportRequest request = RunOf("run", Tiny(kLanguage + kEncoder));
  request.module = "language", request.shard_bytes = 1000;
  EXPECT_THAT(Exported(request).findings.problems, ElementsAre(Field(&Finding::where, "--shard-size")));
  request.shard_bytes.reset();
  EXPECT_THAT(Exported(request).written.shards, ElementsAre("adapter_model.safetensors"));
}

TEST_F(AdapterExport, WhatTheyStandOnIsFoundFromAnywhere) {
  const ExportRequest request = RunOf(
      "run", Tiny(kLanguage + Words{"initialize={sources: [{for: radio_encoder, from: drawn}, {for: language, from: "
                                    "weights/../base}]}"}));
  EXPECT_THAT(Exported(request).findings.problems, IsEmpty());
  EXPECT_EQ(ConfigIn(request.to)["base_model_name_or_path"], (std::filesystem::current_path() / "base").string());
}

TEST_F(AdapterExport, OnlyWhatIsMergedIsCompared) {
  ExportRequest base = RunOf("base", Tiny({}));
  base.module = "language";
  EXPECT_THAT(Exported(base).findings.problems, IsEmpty());
  ExportRequest request = RunOf("run", Tiny(kLanguage + kEncoder), {{"language", "other"}, {"radio_encoder", "other"}});
  request.module = "language", request.like = base.to;
  const ExportedRun exported = Exported(request);
  EXPECT_THAT(exported.findings.problems, IsEmpty());
  EXPECT_THAT(exported.findings.notes, ElementsAre(HasSubstr("the adapters of language were trained on other files")));
}

}  // namespace
}  // namespace planwright
