// A run that ends and goes on, on the same layout or on another one, is the run that never ended
// (docs/checkpoints.md). Real processes, real files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kStop = 3, kSteps = 6;
const std::vector<std::string> kGathered = {"modules.language.parallel.dispatch=all_gather"};

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_resume_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string RunDir() const { return folder_ + "/run"; }
  std::vector<std::string> Overrides(const std::vector<std::string>& layout) const {
    return Join({"precision.params=" + precision_, "checkpoint.every_steps=2", "batch.micro_samples=2"}, layout);
  }
  // A run in the folder of this test, or in one of its own.
  TrainingRun Run(const std::vector<std::string>& layout, int steps, bool here = true,
                  const std::vector<std::string>& options = {}) const {
    return Launch({.recipe = recipe_,
                   .overrides = Overrides(layout),
                   .steps = steps,
                   .run_dir = here ? RunDir() : "",
                   .options = options});
  }
  std::string Newest() const {
    std::string newest;
    for (const auto& entry : fs::directory_iterator(RunDir() + "/checkpoints"))
      newest = std::max(newest, entry.path().string());
    return newest;
  }
  // Turns one bit in the middle of the largest file of a checkpoint.
  void Damage(const std::string& checkpoint) const {
    fs::path largest;
    for (const auto& entry : fs::directory_iterator(checkpoint)) {
      if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
    }
    std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
    const auto middle = static_cast<std::streamoff>(fs::file_size(largest) / 2);
    const int byte = file.seekg(middle).get();
    file.seekp(middle).put(static_cast<char>(byte ^ 4));
  }

  // Two steps on each of these layouts, one after the other, train the curve of the run that never ended.
  void ExpectTheCurveOf(const TrainingRun& whole, const std::vector<std::vector<std::string>>& layouts) const;

  std::string folder_, precision_ = "fp32", recipe_ = kTinyRecipe;
};

void ExpectSameBits(const TrainingRun& a, const TrainingRun& b) {
  ASSERT_EQ(a.steps.size(), b.steps.size());
  EXPECT_THAT(Compare(a, b, 0).differences, IsEmpty());
  ASSERT_EQ(a.parameters_last.size(), b.parameters_last.size());
  for (const auto& [name, tensor] : b.parameters_last)
    EXPECT_EQ(a.parameters_last.at(name).values, tensor.values) << name;
}

// The first step of a run that resumed is another one than that of the whole run.
TrainingRun WithoutFirstStep(TrainingRun run) {
  run.gradients_first.clear();
  run.values_first.clear();
  return run;
}

struct LayoutCase {
  const char* name;
  std::vector<std::string> layout;
  const char* precision;
  friend void PrintTo(const LayoutCase& one, std::ostream* out) { *out << one.name; }
};
std::vector<LayoutCase> LayoutCases() {
  return {{"one_rank", OneRankOnly(), "fp32"},
          {"one_rank_bf16", OneRankOnly(), "bf16"},
          {"dp2_dp2_bf16", Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)), "bf16"},
          {"tp2_ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4)), "fp32"},
          {"gathered_ep2_bf16", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), kGathered), "bf16"},
          {"colocated_4_bf16", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4)), "bf16"}};
}

class SameLayout : public Resume, public ::testing::WithParamInterface<LayoutCase> {};
INSTANTIATE_TEST_SUITE_P(All, SameLayout, ::testing::ValuesIn(LayoutCases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(SameLayout, IsBitIdentical) {
  precision_ = GetParam().precision;
  const TrainingRun whole = Run(GetParam().layout, kSteps, false);
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const TrainingRun begun = Run(GetParam().layout, kStop);
  ASSERT_EQ(begun.exit_code, 0) << begun.output;
  const TrainingRun resumed = Run(GetParam().layout, kSteps);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("resuming after step 3"));
  ExpectSameBits(WithoutFirstStep(resumed), WithoutFirstStep(whole));
  // Its first weights are those that the run before it left.
  for (const auto& [name, tensor] : begun.parameters_last) {
    if (precision_ != "fp32") continue;
    EXPECT_EQ(resumed.parameters.at(name).values, tensor.values) << name;
  }
}

void Resume::ExpectTheCurveOf(const TrainingRun& whole, const std::vector<std::vector<std::string>>& layouts) const {
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  ASSERT_EQ(whole.steps.size(), 2 * layouts.size());
  int steps = 0;
  for (const std::vector<std::string>& layout : layouts) {
    const TrainingRun run = Run(layout, steps += 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    ASSERT_EQ(run.steps.size(), static_cast<size_t>(steps));
    TrainingRun so_far = WithoutFirstStep(whole);
    so_far.steps.resize(run.steps.size());
    TrainingRun compared = WithoutFirstStep(run);
    if (run.steps.size() < whole.steps.size()) compared.gradients_last = so_far.gradients_last;
    const Comparison comparison = Compare(compared, so_far, 1e-9);
    EXPECT_THAT(comparison.differences, IsEmpty());
    EXPECT_FALSE(comparison.parted_at);
  }
}

TEST_F(Resume, AnotherLayoutTrainsTheSameCurve) {
  precision_ = "fp64";
  ExpectTheCurveOf(Run(OneRankOnly(), 10, false),
                   {Join(EncoderOn(2, 1), LanguageOn(2, 4, 2, 4)),                                     // tp, ep
                    Join(EncoderOn(2, 1), LanguageOn(2, 4, 2, 4), kGathered),                          // dispatch
                    Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), Parallel("language", {{"pp", 2}})),  // stages
                    Join(EncoderOn(4, 1), LanguageOn(0, 4, 1, 2)),                                     // colocated
                    OneRankOnly()});
}

TEST_F(Resume, ADecoderOnAnotherLayoutTrainsTheSameCurve) {
  precision_ = "fp64", recipe_ = "recipes/qwen3_moe_tiny.yaml";
  const std::vector<std::string> one = LanguageOn(0, 1, 1, 1);
  ExpectTheCurveOf(Run(one, 4, false),
                   {LanguageOn(0, 4, 4, 2), Join(LanguageOn(0, 2, 1, 1), Parallel("language", {{"pp", 2}}))});
}

// With features of inner layers of the encoder: on one rank each; in stages that hand them on; cut over cp and tp.
std::vector<std::vector<std::string>> LayoutsOfFeatures() {
  const auto on = [](const std::string& module, int first, int ranks) {
    return "modules." + module + ".placement={first_rank: " + std::to_string(first) +
           ", ranks: " + std::to_string(ranks) + "}";
  };
  return {{},
          Join({on("eye_encoder", 0, 2), on("language", 2, 2)}, Parallel("eye_encoder", {{"pp", 2}}),
               Join(Parallel("language", {{"pp", 2}}), {"modules.language.parallel.stage_layers=[3, 7]"})),
          Join({on("eye_encoder", 0, 2), on("language", 2, 4)}, Parallel("eye_encoder", {{"cp", 2}}),
               Parallel("language", {{"cp", 2}, {"tp", 2}}))};
}

TEST_F(Resume, FeaturesOfInnerLayersOnAnotherLayoutTrainTheSameCurve) {
  precision_ = "fp64", recipe_ = "tests/verify/carries.yaml";
  ExpectTheCurveOf(Run({}, kSteps, false), LayoutsOfFeatures());
}

// Layers of the encoder have no backward, mergers learn, and the language model has adapters.
TEST_F(Resume, FrozenLayersBetweenMergersTrainTheSameCurve) {
  precision_ = "fp64", recipe_ = "tests/verify/carries.yaml";
  const std::vector<std::string> frozen = {
      "modules.eye_encoder.train={backbone: frozen}", "modules.language.train={backbone: frozen}",
      "modules.language.adapter={rank: 2, alpha: 4, targets: [q_proj, gate_proj]}"};
  std::vector<std::vector<std::string>> layouts = LayoutsOfFeatures();
  for (std::vector<std::string>& layout : layouts) layout = Join(layout, frozen);
  ExpectTheCurveOf(Run(frozen, kSteps, false), layouts);
}

// A decoder that turns by rows and columns of images, behind its own encoder.
TEST_F(Resume, AQwenVlOnAnotherLayoutTrainsTheSameCurve) {
  precision_ = "fp64", recipe_ = "tests/golden/qwen3_vl_oracle/oracle.yaml";
  const std::vector<std::string> four_steps = {"budget.train_samples=12", "batch.micro_samples=1"};
  const auto on = [&](const std::vector<std::string>& ranks) { return Join(four_steps, ranks); };
  ExpectTheCurveOf(Run(four_steps, 4, false),
                   {on({"modules.language.placement={first_rank: 1, ranks: 2}", "modules.language.parallel.tp=2",
                        "cluster.gpus_per_node=3"}),
                    on({"modules.eye_encoder.placement.ranks=2", "modules.eye_encoder.parallel.tp=2",
                        "modules.language.placement={first_rank: 2, ranks: 2}", "modules.language.parallel.pp=2",
                        "cluster.gpus_per_node=4"})});
}

TEST_F(Resume, ADamagedCheckpointIsNamedAndAnOlderOneTaken) {
  const std::vector<std::string> layout = Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2));
  const TrainingRun whole = Run(layout, kSteps, false);
  ASSERT_EQ(Run(layout, kStop).exit_code, 0);
  const std::string newest = Newest();
  Damage(newest);
  const TrainingRun resumed = Run(layout, kSteps);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("this checkpoint is damaged, an older one is taken: rank "));
  EXPECT_THAT(resumed.output, HasSubstr("resuming after step 2"));
  ExpectSameBits(WithoutFirstStep(resumed), WithoutFirstStep(whole));
}

TEST_F(Resume, NoWholeCheckpointEndsTheRun) {
  ASSERT_EQ(Run(OneRankOnly(), 2).exit_code, 0);
  Damage(Newest());
  const TrainingRun resumed = Run(OneRankOnly(), kSteps);
  EXPECT_EQ(resumed.exit_code, kExitDamaged) << resumed.output;
  EXPECT_THAT(resumed.output, HasSubstr("no checkpoint of"));
}

TEST_F(Resume, ARunWithoutACheckpointYetBeginsAgain) {
  ASSERT_EQ(Run(OneRankOnly(), 2).exit_code, 0);
  fs::remove_all(RunDir() + "/checkpoints");
  fs::remove(RunDir() + "/lives/1/checkpoints.jsonl");  // as if it had been killed before its first one
  const TrainingRun again = Run(OneRankOnly(), 2);      // no record of the life before stays
  ASSERT_EQ(again.exit_code, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("has no checkpoint yet: the run begins at step 1"));
  EXPECT_EQ(again.steps.size(), 2u);
}

TEST_F(Resume, WhatChangesTheCurveIsRefused) {
  ASSERT_EQ(Run(OneRankOnly(), 2).exit_code, 0);
  const std::vector<std::string> other = Join(OneRankOnly(), {"data.seed=77"});
  const TrainingRun refused = Run(other, 4);
  EXPECT_EQ(refused.exit_code, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("data.seed"));
  EXPECT_THAT(refused.output, HasSubstr("--accept-changes"));
  const TrainingRun accepted = Run(other, 4, true, {"--accept-changes"});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.output;
}

TEST_F(Resume, OldCheckpointsGo) {
  const TrainingRun run = Run(
      Join(OneRankOnly(), {"checkpoint.every_steps=1", "checkpoint.keep_last=2", "checkpoint.keep_every_steps=3"}), 7);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(RunDir() + "/checkpoints")) left.push_back(entry.path().filename());
  EXPECT_THAT(left,
              ::testing::UnorderedElementsAre("step-00000003.life-1", "step-00000006.life-1", "step-00000007.life-1"));
}

// The launcher starts no rank of a run that is done (before_ranks_test), but one that ended before it wrote how.
TEST_F(Resume, ADoneRunHasNothingToDo) {
  ASSERT_EQ(Run(OneRankOnly(), 2).exit_code, 0);
  ASSERT_TRUE(fs::remove(RunDir() + "/outcome.json"));
  EXPECT_THAT(Run(OneRankOnly(), 2).output, HasSubstr("nothing to do: all 2 steps are done"));
}

// What the steps that are done would have to be part of.
TEST_F(Resume, StepsThatAreDoneAreNeitherRecordedNorProfiled) {
  ASSERT_EQ(Run(OneRankOnly(), 2).exit_code, 0);
  const TrainingRun recorded = Run(OneRankOnly(), 4, true, {"--record-routing", folder_ + "/choices"});
  EXPECT_EQ(recorded.exit_code, kExitUsage);
  EXPECT_THAT(recorded.output, HasSubstr("--record-routing takes a run from its first step"));
  EXPECT_FALSE(fs::exists(folder_ + "/choices"));
  const TrainingRun profiled = Run(OneRankOnly(), 4, true, {"--trace", "2-3"});
  EXPECT_EQ(profiled.exit_code, kExitUsage);
  EXPECT_THAT(profiled.output, HasSubstr("--trace asks for steps 2-3, and the run in "));
  EXPECT_EQ(Run(OneRankOnly(), 4, true, {"--trace", "3-4"}).exit_code, 0);
}

}  // namespace
}  // namespace planwright::testing
