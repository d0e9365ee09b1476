// What going on from a checkpoint with another plan changes: from which step on, and what a launch would refuse.
#include "planner/views/diff/resume_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/views/diff/toy_recipes.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using testing::CompiledFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Join;
using testing::kTiny;
using ::testing::Not;

// A run of the tiny recipe on one rank, after 10 of 20 steps.
class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/resume_diffXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    wrote_ = PlanWith({});
    auto opened = CheckpointReader::Open(testing::WriteCheckpointOf(wrote_, folder_, 10, 1));
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = *std::move(opened);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static Plan PlanWith(const std::vector<std::string>& overrides) {
    return CompiledFile(kTiny, Join({"checkpoint.every_steps=2"}, overrides));
  }
  ResumeDiff With(const std::vector<std::string>& overrides) const {
    return DiffResume(*checkpoint_, &wrote_, PlanWith(overrides));
  }
  std::string Text(const ResumeDiff& diff) const { return ResumeDiffText(diff, "CHECKPOINT", "RECIPE"); }

  std::string folder_;
  Plan wrote_;
  std::unique_ptr<CheckpointReader> checkpoint_;
};

TEST_F(Resume, WithItsOwnPlanNothingChanges) {
  const ResumeDiff diff = With({});
  EXPECT_TRUE(diff.same());
  EXPECT_EQ(diff.steps_done, 10);
  EXPECT_EQ(diff.steps, 20);
  EXPECT_THAT(diff.refusals, IsEmpty());
  EXPECT_FALSE(diff.other_layout || diff.other_samples || diff.learning_rate || diff.weight_decay);
  EXPECT_THAT(Text(diff), AllOf(HasSubstr("going on from CHECKPOINT with RECIPE\n"),
                                HasSubstr("begins         after step 10 of 20, from sample 80 on\n"),
                                HasSubstr("layout         as before"), HasSubstr("learning rate  as before\n"),
                                HasSubstr("as the plan needs them\n"), HasSubstr("are the same plan\n")));
  EXPECT_EQ(ResumeDiffJson(diff)["same"], true);
}

TEST_F(Resume, AnotherLayoutKeepsTheCurve) {
  for (const testing::Layout& layout : testing::TinyLayouts()) {
    const ResumeDiff diff = With(layout.overrides);
    EXPECT_FALSE(diff.same()) << layout.name;
    EXPECT_TRUE(diff.other_layout) << layout.name;
    EXPECT_FALSE(diff.plan->may_change_loss()) << layout.name;
    EXPECT_FALSE(diff.other_samples || diff.learning_rate || diff.weight_decay) << layout.name;
    EXPECT_THAT(diff.refusals, IsEmpty()) << layout.name;
    EXPECT_LE(diff.most_bytes, diff.all_bytes) << layout.name;
    EXPECT_GE(diff.all_bytes, diff.checkpoint_bytes / 2) << layout.name;
    EXPECT_THAT(Text(diff), Not(HasSubstr("--accept-changes"))) << layout.name;
  }
  EXPECT_THAT(Text(With(Join(testing::EncoderOn(2, 1), testing::LanguageOn(2, 4, 2, 4)))),
              HasSubstr("another one, on 6 ranks instead of 1;"));
}

TEST_F(Resume, RatesAreComparedFromTheNextStepOn) {
  // Warmup is over at step 2.
  const ResumeDiff warmup = With({"budget.learning_rate.init=1.0e-4"});
  EXPECT_FALSE(warmup.learning_rate);
  const ResumeDiff peak = With({"budget.learning_rate.peak=1.0e-3"});
  ASSERT_TRUE(peak.learning_rate);
  EXPECT_EQ(peak.learning_rate->step, 11);
  EXPECT_GT(peak.learning_rate->from, peak.learning_rate->to);
  EXPECT_TRUE(peak.plan->may_change_loss());
  EXPECT_THAT(Text(peak), AllOf(HasSubstr("learning rate  another one from step 11 on: "),
                                HasSubstr("a launch asks for --accept-changes")));
  // A longer training with the same decay has the same rates.
  EXPECT_FALSE(With({"budget.train_samples=320"}).learning_rate);
  EXPECT_EQ(With({"budget.train_samples=320"}).steps, 40);
  EXPECT_TRUE(With({"budget.weight_decay={start: 0.1, end: 0.1}"}).weight_decay);
  EXPECT_FALSE(With({"data.seed=5"}).learning_rate);
}

TEST_F(Resume, RatesByPartAreTold) {
  const std::string tower = "optimizer.parts=[{match: radio_encoder, learning_rate: 3.0e-4}]";
  const ResumeDiff added = With({tower});
  EXPECT_FALSE(added.learning_rate || added.weight_decay);
  EXPECT_TRUE(added.plan->may_change_loss());
  ASSERT_EQ(added.parts.size(), 1u);
  EXPECT_EQ(added.parts[0].from, "");
  EXPECT_EQ(added.parts[0].to, "radio_encoder");
  EXPECT_EQ(added.parts[0].tensors, static_cast<int64_t>(wrote_.modules[0].parameters.size()));
  ASSERT_TRUE(added.parts[0].learning_rate);
  EXPECT_EQ(added.parts[0].learning_rate->step, 11);
  EXPECT_DOUBLE_EQ(added.parts[0].learning_rate->to, added.parts[0].learning_rate->from / 10);
  EXPECT_FALSE(added.parts[0].weight_decay);
  EXPECT_THAT(Text(added),
              AllOf(HasSubstr("learning rate  as before\n"), HasSubstr("rates by part  "),
                    HasSubstr(" tensors in part radio_encoder, before in no part (the first is "),
                    HasSubstr("): learning rate another one from step 11 on: "),
                    HasSubstr("optimizer.parts.radio_encoder"), HasSubstr("a launch asks for --accept-changes")));
  EXPECT_EQ(ResumeDiffJson(added)["resume"]["parts"][0]["to"], "radio_encoder");
  // A part with the rates of the schedule changes nothing.
  const ResumeDiff same = With({"optimizer.parts=[{match: radio_encoder, learning_rate: 3.0e-3}]"});
  EXPECT_THAT(same.parts, IsEmpty());
  EXPECT_FALSE(same.plan->may_change_loss());
  EXPECT_FALSE(same.same());
  // From one factor to another.
  wrote_ = PlanWith({tower});
  EXPECT_TRUE(With({tower}).same());
  const ResumeDiff other = With(
      {"optimizer.parts=[{match: \"*.norm1.*\", weight_decay: 0.0}, {match: radio_encoder, learning_rate: 6.0e-4}]"});
  ASSERT_EQ(other.parts.size(), 2u);
  EXPECT_EQ(other.parts[0].from, "radio_encoder");
  EXPECT_EQ(other.parts[0].to, "*.norm1.*");
  EXPECT_DOUBLE_EQ(other.parts[0].learning_rate->to, other.parts[0].learning_rate->from * 10);
  EXPECT_EQ(other.parts[1].to, "radio_encoder");
  EXPECT_DOUBLE_EQ(other.parts[1].learning_rate->to, other.parts[1].learning_rate->from * 2);
}

TEST_F(Resume, SamplesAreNamed) {
  const ResumeDiff diff = With({"data.seed=5"});
  EXPECT_TRUE(diff.other_samples);
  EXPECT_FALSE(diff.other_layout);
  EXPECT_THAT(Text(diff), HasSubstr("samples        other ones from sample 80 on\n"));
}

// The run has two sources in turns, and 80 samples are behind it.
TEST_F(Resume, OtherSourcesAreNamedFromTheFirstSampleOn) {
  const auto weights = [](const std::string& a, const std::string& b, const std::string& shard_of_b = "b") {
    return PlanWith({"models.hybrid_moe_tiny.vocabulary=260", "batch.sequence_length=96",
                     "data={kind: sources, max_patches: 64, sources: [{name: a, kind: webdataset, shards: "
                     "/gone/a.tar, weight: " +
                         a + "}, {name: b, kind: webdataset, shards: /gone/" + shard_of_b + ".tar, weight: " + b +
                         "}]}"});
  };
  const Plan wrote = weights("1", "1");
  auto opened = CheckpointReader::Open(testing::WriteCheckpointOf(wrote, folder_ + "/sources", 10, 1));
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto with = [&](const Plan& plan) { return DiffResume(**opened, &wrote, plan); };
  EXPECT_TRUE(with(weights("0.5", "0.5")).same());

  // 51 to 50: in turns up to sample 100. 3 to 2: other ones from sample 5 on, of which those from 80 on are left.
  const ResumeDiff late = with(weights("51", "50")), early = with(weights("3", "2"));
  EXPECT_EQ(late.first_other_sample, 101);
  EXPECT_THAT(Text(late), AllOf(HasSubstr("begins         after step 10 of 20, from sample 80 on\n"),
                                HasSubstr("samples        other ones from sample 101 on\n"),
                                HasSubstr("a launch asks for --accept-changes"), HasSubstr("data.sources.a.weight")));
  EXPECT_EQ(ResumeDiffJson(late)["resume"]["first_other_sample"], 101);
  EXPECT_THAT(Text(early), HasSubstr("samples        other ones from sample 80 on\n"));
  // Sample 81 is the first of b that is left.
  EXPECT_THAT(Text(with(weights("1", "1", "c"))), HasSubstr("samples        other ones from sample 81 on\n"));
}

TEST_F(Resume, StepsOfAnotherSizeAreCountedAnew) {
  const ResumeDiff half = With({"batch.global_samples=4"});
  EXPECT_EQ(half.steps_done, 20);
  EXPECT_THAT(Text(half), HasSubstr("after step 20 of 40, from sample 80 on (step 10 of the run so far)"));
  const ResumeDiff odd = With({"batch.global_samples=32"});  // 80 is no multiple
  ASSERT_EQ(odd.refusals.size(), 1U);
  EXPECT_THAT(odd.refusals[0], HasSubstr("no whole number of steps of 32 samples"));
  EXPECT_THAT(Text(odd), HasSubstr("going on from CHECKPOINT with RECIPE is refused\n"));
  EXPECT_THAT(Text(With({"budget.train_samples=80", "budget.learning_rate.decay_samples=80"})),
              HasSubstr("after step 10 of 10, from sample 80 on; nothing is left to do"));
}

TEST_F(Resume, WhatALaunchRefusesIsTold) {
  const ResumeDiff model = With({"models.hybrid_moe_tiny.vocabulary=260"});
  EXPECT_FALSE(model.same());
  ASSERT_EQ(model.refusals.size(), 1U);
  EXPECT_THAT(model.refusals[0], HasSubstr("its tensors are not those of the plan, 6 differences"));
  EXPECT_THAT(Text(model), HasSubstr("language.lm_head.weight is fp32[256,64] in the checkpoint"));
  EXPECT_EQ(ResumeDiffJson(model)["resume"]["misfits"].size(), 6U);
  const ResumeDiff deep = With({"models.hybrid_moe_tiny.pattern=ME*EMM"});
  EXPECT_THAT(Text(deep), AllOf(HasSubstr("the checkpoint has no language.backbone.layers.4."), HasSubstr(" more\n")));
  const ResumeDiff none = DiffResume(*checkpoint_, &wrote_, CompiledFile(kTiny));
  ASSERT_EQ(none.refusals.size(), 1U);
  EXPECT_THAT(none.refusals[0], HasSubstr("set checkpoint.every_steps"));
}

TEST_F(Resume, WithoutThePlanThatWroteItTheRestIsCompared) {
  const ResumeDiff own = DiffResume(*checkpoint_, nullptr, wrote_);
  EXPECT_TRUE(own.same()) << "the manifest has the digest";
  const ResumeDiff other = DiffResume(*checkpoint_, nullptr, PlanWith({"models.hybrid_moe_tiny.vocabulary=260"}));
  EXPECT_FALSE(other.same());
  EXPECT_EQ(other.misfits.size(), 6U);
  EXPECT_THAT(Text(other),
              AllOf(HasSubstr("after step 10 of 20"), HasSubstr("not compared   layout, samples and rates"),
                    Not(HasSubstr("learning rate"))));
  const auto json = ResumeDiffJson(other);
  EXPECT_EQ(json["may_change_loss"], nullptr);
  EXPECT_EQ(json["changes"], nullptr);
  EXPECT_EQ(json["resume"]["other_layout"], nullptr);
  EXPECT_EQ(json["resume"]["steps_done"], 10);
}

}  // namespace
}  // namespace planwright
