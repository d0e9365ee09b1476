// A run that starts from the checkpoint of another one (docs/checkpoints.md#starting-from-a-checkpoint), on the same
// layout or on another one. Real processes, real files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kStop = 3, kSteps = 6;
constexpr char kOther[] = "data.seed=99";  // other samples than those of the run before

class Initialize : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_initialize_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Source() const { return folder_ + "/source"; }
  std::string Checkpoint(int step = kStop) const {
    return Source() + "/checkpoints/step-0000000" + std::to_string(step) + ".life-1";
  }
  TrainingRun Run(const std::string& run_dir, const std::vector<std::string>& overrides, int steps,
                  const std::string& probe = "") const {
    return Launch({.recipe = kTinyRecipe,
                   .overrides = Join({"precision.params=" + precision_, "batch.micro_samples=2"}, overrides),
                   .steps = steps,
                   .run_dir = run_dir.empty() ? "" : folder_ + "/" + run_dir,
                   .probe = probe.empty() ? "" : folder_ + "/" + probe});
  }
  // The run whose checkpoint after step kStop others start from; its weights are also in folder_/probe.
  void RunSource(const std::vector<std::string>& layout) const {
    const TrainingRun run = Run("source", Join(layout, {"checkpoint.every_steps=2"}), kStop, "probe");
    ASSERT_EQ(run.exit_code, 0) << run.output;
  }
  static std::string From(const std::string& path) { return "initialize.from=" + path; }
  void ExpectRefused(const std::vector<std::string>& overrides, int status, const std::string& message) const {
    const TrainingRun run = Run("", Join(OneRankOnly(), overrides), 1);
    EXPECT_EQ(run.exit_code, status) << run.output;
    EXPECT_THAT(run.output, AllOf(HasSubstr(message), Not(HasSubstr("step 1/"))));
  }

  std::string folder_, precision_ = "fp32";
};

std::vector<std::string> Apart() { return Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4)); }

// Weights only: as from a file of the same weights, on any layout; steps, samples and moments begin anew.
TEST_F(Initialize, FromACheckpointIsAsFromAFileOfItsWeights) {
  precision_ = "fp64";
  RunSource(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)));
  const TrainingRun file =
      Run("", Join(OneRankOnly(), {From(folder_ + "/probe/parameters_last.safetensors"), kOther}), 2);
  ASSERT_EQ(file.exit_code, 0) << file.output;
  for (const auto& layout : {OneRankOnly(), Apart(), Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))}) {
    const TrainingRun run = Run("", Join(layout, {From(Checkpoint()), kOther}), 2);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr("beginning at step 1 with the weights of " + Checkpoint()));
    const Comparison comparison = Compare(run, file, 1e-9);
    EXPECT_THAT(comparison.differences, IsEmpty());
    EXPECT_FALSE(comparison.parted_at);
    ASSERT_EQ(run.parameters.size(), file.parameters.size());
    for (const auto& [name, tensor] : file.parameters) EXPECT_EQ(run.parameters.at(name).values, tensor.values) << name;
  }
}

// With optimizer and schedule a new run directory continues the run to the bit; with bf16 this needs the masters.
class Continued : public Initialize, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Continued, ::testing::Values("fp32", "bf16"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Continued, InANewRunDirectoryIsBitIdentical) {
  precision_ = GetParam();
  const std::vector<std::string> layout = Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1)),
                                 keep = {"checkpoint.every_steps=2"},
                                 all = {From(Source()), "initialize.optimizer=true", "initialize.schedule=checkpoint"};
  const TrainingRun whole = Run("", Join(layout, keep), kSteps);
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  RunSource(layout);
  const TrainingRun first = Run("target", Join(layout, keep, all), kSteps - 1);
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output,
              AllOf(HasSubstr("beginning at step 4 with the weights and the optimizer of " + Checkpoint()),
                    HasSubstr("step 4/"), Not(HasSubstr("step 3/"))));
  // It has checkpoints of its own now: they come first, and what it started from may be gone.
  fs::remove_all(Source());
  const TrainingRun run = Run("target", Join(layout, keep, all), kSteps);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("resuming after step 5 from " + folder_ + "/target"));
  ASSERT_EQ(run.steps.size(), static_cast<size_t>(kSteps - kStop));
  for (int i = 0; i < kSteps - kStop; ++i) {
    const StepMetrics &a = run.steps[static_cast<size_t>(i)], &b = whole.steps[static_cast<size_t>(i + kStop)];
    EXPECT_EQ(a.loss, b.loss) << i;
    EXPECT_EQ(a.grad_norm, b.grad_norm) << i;
    EXPECT_EQ(a.learning_rate, b.learning_rate) << i;
    EXPECT_EQ(a.routing, b.routing) << i;
  }
  ASSERT_EQ(run.parameters_last.size(), whole.parameters_last.size());
  for (const auto& [name, tensor] : whole.parameters_last)
    EXPECT_EQ(run.parameters_last.at(name).values, tensor.values) << name;
}

// Each of the two keys does its part alone.
TEST_F(Initialize, OptimizerAndScheduleAreIndependent) {
  RunSource(OneRankOnly());
  const auto run = [&](const std::vector<std::string>& keys, int steps) {
    const TrainingRun run = Run("", Join(OneRankOnly(), {From(Checkpoint())}, keys), steps);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    return run;
  };
  const TrainingRun neither = run({}, 2), optimizer = run({"initialize.optimizer=true"}, 2),
                    schedule = run({"initialize.schedule=checkpoint"}, kStop + 2);
  ASSERT_EQ(neither.steps.size(), 2U);
  ASSERT_EQ(optimizer.steps.size(), 2U);
  ASSERT_EQ(schedule.steps.size(), 2U);
  // The first loss depends on weights and samples alone.
  EXPECT_EQ(optimizer.steps[0].loss, neither.steps[0].loss);
  EXPECT_NE(schedule.steps[0].loss, neither.steps[0].loss);
  EXPECT_EQ(optimizer.steps[0].learning_rate, 0);  // the first step of a warm-up
  EXPECT_GT(schedule.steps[0].learning_rate, 0);
  // The rate of the first step is 0, so weights move in the second one, by moments that differ.
  bool moved_otherwise = false;
  for (const auto& [name, tensor] : neither.parameters_last)
    moved_otherwise |= optimizer.parameters_last.at(name).values != tensor.values;
  EXPECT_TRUE(moved_otherwise);
}

// What is trained, and in which precision, may change: a weight comes from its master where there is one.
TEST_F(Initialize, AnotherPrecisionAndAFrozenEncoder) {
  precision_ = "bf16";
  RunSource(OneRankOnly());
  precision_ = "fp32";
  const std::vector<std::string> frozen = {"modules.radio_encoder.train={backbone: frozen, projection: trained}"};
  const TrainingRun file =
      Run("", Join(OneRankOnly(), frozen, {From(folder_ + "/probe/parameters_last.safetensors")}), 2);
  ASSERT_EQ(file.exit_code, 0) << file.output;
  const TrainingRun run =
      Run("frozen", Join(OneRankOnly(), frozen, {From(Checkpoint()), "checkpoint.every_steps=2"}), 2);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(Compare(run, file, 0).differences, IsEmpty());
  // And back: the encoder of the frozen run is trained again. It has no moments there.
  const std::string from = From(folder_ + "/frozen");
  EXPECT_EQ(Run("", Join(OneRankOnly(), {from}), 1).exit_code, 0);
  ExpectRefused({from, "initialize.optimizer=true"}, kExitUsage, "missing: radio_encoder.");
}

TEST_F(Initialize, WhatDoesNotFitIsListed) {
  RunSource(OneRankOnly());
  const std::string from = From(Checkpoint());
  ExpectRefused({from, "models.hybrid_moe_tiny.moe.ffn=32"}, kExitUsage,
                "experts.N.down_proj.weight is [64, 48], the model's is [64, 32]");
  // Another name of a module: both sides of it, once for each parameter.
  const std::string renamed = folder_ + "/renamed.yaml";
  std::stringstream text;
  text << std::ifstream(fs::path(InSource()) / kTinyRecipe).rdbuf();
  std::ofstream(renamed) << std::regex_replace(text.str(), std::regex("radio_encoder"), "eyes");
  const TrainingRun run =
      Launch({.recipe = renamed, .overrides = {from, "initialize.ignore=[radio_encoder.cls_token]"}, .steps = 1});
  EXPECT_EQ(run.exit_code, kExitUsage) << run.output;
  EXPECT_THAT(run.output,
              AllOf(HasSubstr("missing: eyes."), HasSubstr("left over: radio_encoder."), Not(HasSubstr(".exp_avg"))));
  ExpectRefused({from, "initialize.schedule=checkpoint", "batch.global_samples=16"}, kExitUsage,
                "is after 24 samples, which is no whole number of steps of 16");
}

// A folder, a checkpoint and draws, each for a part. What ranks read is what `plan weights` says.
TEST_F(Initialize, EachPartFromItsSource) {
  RunSource(OneRankOnly());
  fs::create_directories(folder_ + "/omni");
  fs::create_symlink("../probe/parameters_last.safetensors", folder_ + "/omni/model.safetensors");
  const std::string sources = "initialize={sources: [{for: language, from: " + folder_ +
                              "/omni}, {for: radio_encoder.backbone, from: " + Source() +
                              "}, {for: radio_encoder.projection, from: drawn}]}";
  const std::vector<std::string> layout = Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 2));
  const TrainingRun run = Run("parts", Join(layout, {sources}), 1);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("beginning at step 1 with the weights of " + Checkpoint() +
                                    " (radio_encoder.backbone), draws (radio_encoder.projection), " + folder_ +
                                    "/omni (language)"));
  const TrainingRun drawn = Run("", layout, 1), file = Run("", Join(layout, {From(folder_ + "/omni")}), 1);
  ASSERT_EQ(drawn.exit_code, 0) << drawn.output;
  ASSERT_EQ(file.exit_code, 0) << file.output;
  ASSERT_EQ(run.parameters.size(), drawn.parameters.size());
  for (const auto& [name, tensor] : run.parameters) {
    const TrainingRun& like = name.starts_with("mlp1.") ? drawn : file;
    EXPECT_EQ(tensor.values, like.parameters.at(name).values) << name;
  }
  EXPECT_NE(drawn.parameters.at("language_model.lm_head.weight").values,
            file.parameters.at("language_model.lm_head.weight").values);
}

TEST_F(Initialize, WhatIsNoCheckpointIsRefused) {
  const std::string safetensors = From(folder_ + "/weights.safetensors");
  ExpectRefused({safetensors, "initialize.optimizer=true"}, kExitInvalid, "`initialize.optimizer` needs a checkpoint");
  ExpectRefused({safetensors, "initialize.schedule=checkpoint"}, kExitInvalid,
                "`initialize.schedule` needs a checkpoint");
  ExpectRefused({safetensors, "initialize.schedule=never"}, kExitInvalid, "initialize.schedule");
  ExpectRefused({safetensors}, kExitUsage, "cannot read " + folder_ + "/weights.safetensors: No such file");
  ExpectRefused({From(folder_)}, kExitUsage,
                "it has no weights; and it is no checkpoint, as it has no manifest.json, and no run directory");
  std::ofstream(folder_ + "/weights") << "bytes";
  ExpectRefused({From(folder_ + "/weights"), "initialize.optimizer=true"}, kExitUsage, "is no checkpoint and no run");
  ExpectRefused({From(folder_ + "/weights")}, kExitUsage, "too few for a safetensors file");
  fs::create_directories(folder_ + "/checkpoints");
  ExpectRefused({From(folder_)}, kExitUsage, "has no checkpoint that counts");
}

TEST_F(Initialize, DamageIsNamedAndNothingElseIsTaken) {
  RunSource(OneRankOnly());
  const std::string shard = Checkpoint() + "/rank-00000.safetensors";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(shard) / 2);
  const int byte = file.seekg(middle).get();
  file.seekp(middle).put(static_cast<char>(byte ^ 4)).flush();
  ExpectRefused({From(Source()), "initialize.optimizer=true"}, kExitDamaged, shard + ": tensor ");
  // A size that is wrong is seen before the checkpoint is chosen: of a run directory the one before is taken.
  fs::resize_file(shard, fs::file_size(shard) - 1);
  ExpectRefused({From(Checkpoint())}, kExitDamaged, "rank-00000.safetensors: it has ");
  const TrainingRun older = Run("", Join(OneRankOnly(), {From(Source())}), 1);
  EXPECT_EQ(older.exit_code, 0) << older.output;
  EXPECT_THAT(older.output,
              AllOf(HasSubstr("checkpoint " + Checkpoint() + " is not used: rank-00000.safetensors: it has"),
                    HasSubstr("with the weights of " + Checkpoint(2))));
}

}  // namespace
}  // namespace planwright::testing
