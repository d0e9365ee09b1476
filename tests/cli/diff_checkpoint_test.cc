// `plan diff` of a checkpoint and a recipe: what it prints, and how it exits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "planner/base/digest/sha256.h"
#include "planner/base/json/json_limits.h"
#include "planner/state/checkpoint/run_lives.h"
#include "tests/cli/plan_program.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ProgramResult;

const std::string kRecipe = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
const std::string kOwn = kRecipe + " checkpoint.every_steps=2";

// A run that published steps 2 and 4.
class DiffCheckpoint : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    run_ = folder_ + "/run";
    plan_ = testing::CompiledFile(kRecipe, {"checkpoint.every_steps=2"});
    EXPECT_EQ(*TakeLife(run_), 1);
    EXPECT_TRUE(WriteLifeStart(run_, 1, testing::StartOf(plan_)).ok());
    older_ = testing::WriteCheckpointOf(plan_, run_, 2, 1);
    newest_ = testing::WriteCheckpointOf(plan_, run_, 4, 1);
  }
  ProgramResult Diff(const std::string& arguments) { return Plan("diff " + arguments); }
  // Another text in the place of the plan of the newest checkpoint; the manifest knows it.
  void ReplacePlan(const std::string& text) {
    absl::StatusOr<Manifest> manifest = ReadManifest(Read("run/checkpoints/step-00000004.life-1/manifest.json"));
    ASSERT_TRUE(manifest.ok());
    manifest->plan_bytes = static_cast<int64_t>(text.size());
    manifest->plan_sha256 = Sha256Hex(text);
    ASSERT_TRUE(WriteDurably(newest_, kCheckpointPlanFile, text).ok());
    ASSERT_TRUE(PublishManifest(newest_, *manifest).ok());
  }

  planwright::Plan plan_;
  std::string run_, older_, newest_;
};

TEST_F(DiffCheckpoint, TheOwnRecipeChangesNothing) {
  const ProgramResult same = Diff(run_ + " " + kOwn);
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.err, IsEmpty());
  EXPECT_THAT(same.out, AllOf(HasSubstr("going on from " + newest_ + " with "), HasSubstr("after step 4 of 20"),
                              HasSubstr("are the same plan")));
  EXPECT_EQ(Diff(newest_ + " " + kOwn).out, same.out);
  EXPECT_THAT(Diff(older_ + " " + kOwn).out, HasSubstr("after step 2 of 20"));
}

TEST_F(DiffCheckpoint, ACheckpointExplainsItselfWithoutItsRun) {
  const std::string copy = folder_ + "/copy";
  std::filesystem::copy(older_, copy);
  std::filesystem::remove_all(run_);
  EXPECT_EQ(Diff(copy + " " + kOwn).status, 0);
}

TEST_F(DiffCheckpoint, WhatDiffersIsToldAndTheExitStatusIs1) {
  const ProgramResult layout = Diff(run_ + " " + kOwn + " modules.language.placement.first_rank=1");
  EXPECT_EQ(layout.status, 1) << layout.err;
  EXPECT_THAT(layout.out, AllOf(HasSubstr("another one, on 2 ranks instead of 1"), HasSubstr("does not change"),
                                Not(HasSubstr("--accept-changes"))));
  const ProgramResult refused = Diff(run_ + " " + kRecipe);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.out, AllOf(HasSubstr("is refused"), HasSubstr("set checkpoint.every_steps")));
  const ProgramResult rate = Diff(run_ + " " + kOwn + " budget.learning_rate.peak=1.0e-3 --json");
  EXPECT_EQ(rate.status, 1);
  const json told = json::parse(rate.out);
  EXPECT_EQ(told["same"], false);
  EXPECT_EQ(told["may_change_loss"], true);
  EXPECT_FALSE(told["changes"].empty());
  EXPECT_EQ(told["resume"]["checkpoint"], newest_);
  EXPECT_EQ(told["resume"]["step"], 4);
  EXPECT_EQ(told["resume"]["learning_rate"]["step"], 5);
  EXPECT_EQ(told["resume"]["weight_decay"], nullptr);
  EXPECT_EQ(told["resume"]["refused"].size(), 0U);
}

// On the right a checkpoint is its plan: nothing goes on from a recipe.
TEST_F(DiffCheckpoint, OnTheRightItIsAPlan) {
  const ProgramResult same = Diff(kOwn + " " + run_);
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.out, AllOf(HasSubstr("are the same plan"), Not(HasSubstr("going on"))));
  const ProgramResult both = Diff(older_ + " " + newest_);
  EXPECT_EQ(both.status, 0) << both.err;
  EXPECT_THAT(both.out, HasSubstr("after step 2 of 20"));
}

TEST_F(DiffCheckpoint, APlanOfAnotherReleaseIsNotCompared) {
  ReplacePlan("{\"format_version\": 1}\n");
  const ProgramResult same = Diff(newest_ + " " + kOwn);
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.err, HasSubstr("plan.json"));
  EXPECT_THAT(same.out, HasSubstr("cannot be read"));
  const ProgramResult other = Diff(newest_ + " " + kOwn + " models.hybrid_moe_tiny.vocabulary=260 --json");
  EXPECT_EQ(other.status, 1) << other.err;
  const json told = json::parse(other.out);
  EXPECT_EQ(told["changes"], nullptr);
  EXPECT_EQ(told["resume"]["misfits"].size(), 6U);
}

// The run of tests/end_to_end/fifteen_groups, as a version wrote it whose plans had more groups. Its programs are those
// of that version, and they are all that differs.
TEST_F(DiffCheckpoint, APlanWithTheGroupsOfBeforeIsCompared) {
  const std::string earlier = InSource("tests/end_to_end/fifteen_groups");
  const std::string run = earlier + "/run", recipe = earlier + "/recipe.yaml";
  ASSERT_NE(
      planwright::ReadWholeFile(run + "/plan.json", planwright::kPlanJson.bytes).value_or("").find("language.tp_ep_pp"),
      std::string::npos);
  const ProgramResult same = Diff(run + " " + recipe);
  EXPECT_EQ(same.status, 1) << same.err;
  EXPECT_THAT(same.err, IsEmpty());
  EXPECT_THAT(same.out, AllOf(HasSubstr("after step 2 of 4"), HasSubstr("\nprograms\n"),
                              HasSubstr("1 difference; the loss curve does not change")));
  const ProgramResult rate = Diff(run + " " + recipe + " budget.learning_rate.peak=2.0e-2 --json");
  EXPECT_EQ(rate.status, 1) << rate.err;
  const json told = json::parse(rate.out);
  ASSERT_EQ(told["changes"].size(), 2U) << told["changes"];
  EXPECT_EQ(told["changes"][0]["area"], "budget");
  EXPECT_EQ(told["changes"][1]["area"], "programs");
  EXPECT_EQ(told["resume"]["learning_rate"]["step"], 3);
  EXPECT_EQ(Plan("checkpoint verify --all " + run).status, 0);
  // A compiled plan is proven, shown and compared without the groups that are gone.
  EXPECT_EQ(Plan("validate " + run + "/plan.json").status, 0);
  EXPECT_EQ(Plan("show " + run + "/plan.json groups").out, Plan("show " + recipe + " groups").out);
  const json programs = json::parse(Diff(run + "/plan.json " + recipe + " --json").out)["changes"];
  ASSERT_EQ(programs.size(), 1U) << programs;
  EXPECT_EQ(programs[0]["area"], "programs");
}

TEST_F(DiffCheckpoint, WhatCannotBeComparedExitsWith2) {
  std::filesystem::create_directories(folder_ + "/nothing");
  std::filesystem::create_directories(folder_ + "/empty/checkpoints");
  Write("file", "text");
  for (const auto& [words, says] : std::vector<std::pair<std::string, std::string>>{
           {folder_ + "/nothing " + kOwn, "is no checkpoint, as it has no manifest.json, and no run directory"},
           {folder_ + "/empty " + kOwn, "has no checkpoint that counts"},
           {run_ + " data.seed=5 " + kOwn, "overrides such as `data.seed=5` need a recipe"},
           {run_, "needs two recipes, plans or checkpoints; found 1"},
           {run_ + " " + kOwn + " data.sed=5", "sed"},
           {run_ + " " + folder_ + "/none.yaml", "none.yaml"}}) {
    const ProgramResult result = Diff(words);
    EXPECT_EQ(result.status, 2) << words << result.err;
    EXPECT_THAT(result.err, HasSubstr(says)) << words;
    EXPECT_THAT(result.out, IsEmpty()) << words;
  }
  // A damaged one is not gone on from: of a run, the older one is compared.
  Write("run/checkpoints/step-00000004.life-1/plan.json", "{}");
  EXPECT_EQ(Diff(newest_ + " " + kOwn).status, 2);
  EXPECT_THAT(Diff(newest_ + " " + kOwn).err, HasSubstr("plan.json"));
  EXPECT_THAT(Diff(run_ + " " + kOwn).out, HasSubstr("going on from " + older_));
}

}  // namespace
}  // namespace planwright
