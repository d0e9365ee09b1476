// Three training stages, one after the other: projector, language model, encoder (docs/training/stages.md). Each starts
// from the weights that the one before left, on another layout. Real processes over Gloo.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

// A folder for the probe files of a chain of stages. It is removed at the end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "planwright_stages_XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  std::string of(size_t stage) const { return path_ + "/stage" + std::to_string(stage); }

 private:
  std::string path_;
};

struct Stage {
  std::string recipe;
  std::vector<std::string> overrides;
};

std::vector<TrainingRun> TrainStages(const std::vector<Stage>& stages, int steps) {
  const Folder folder;
  std::vector<TrainingRun> runs;
  for (size_t i = 0; i < stages.size(); ++i) {
    std::vector<std::string> overrides = stages[i].overrides;
    if (i > 0) overrides.push_back("initialize={from: " + folder.of(i - 1) + "/parameters_last.safetensors}");
    runs.push_back(Launch({.recipe = stages[i].recipe, .overrides = overrides, .steps = steps, .probe = folder.of(i)}));
    EXPECT_EQ(runs.back().exit_code, 0) << runs.back().output;
    if (runs.back().exit_code != 0) break;
  }
  return runs;
}

bool IsProjector(const std::string& name) { return name.starts_with("mlp1."); }
bool IsEncoder(const std::string& name) { return name.starts_with("vision_model."); }
bool IsExpertBias(const std::string& name) { return name.ends_with("e_score_correction_bias"); }

// A frozen weight keeps every bit, a trained one has a gradient and changes. The expert bias changes without a
// gradient.
void ExpectTrains(const TrainingRun& run, bool (*trained)(const std::string& name)) {
  ASSERT_FALSE(run.parameters.empty());
  ASSERT_EQ(run.parameters.size(), run.parameters_last.size());
  size_t moved = 0, biases = 0;
  for (const auto& [name, first] : run.parameters) {
    const bool changed = run.parameters_last.at(name).values != first.values;
    EXPECT_EQ(run.gradients_first.contains(name), trained(name) && !IsExpertBias(name)) << name;
    EXPECT_FALSE(changed && !trained(name)) << name << " is frozen, but changed";
    (IsExpertBias(name) ? biases : moved) += changed;
  }
  // All, except perhaps the few weights that no sample of the run used (an expert that nobody chose).
  EXPECT_GT(moved, run.gradients_first.size() / 2);
  EXPECT_EQ(biases > 0, trained("e_score_correction_bias"));
}

void ExpectFollows(const TrainingRun& later, const TrainingRun& earlier) {
  ASSERT_EQ(later.parameters.size(), earlier.parameters_last.size());
  for (const auto& [name, tensor] : earlier.parameters_last) {
    EXPECT_TRUE(later.parameters.contains(name) && later.parameters.at(name).values == tensor.values)
        << name << " is not what the stage before left";
  }
}

void ExpectThreeStages(const std::vector<TrainingRun>& runs) {
  ASSERT_EQ(runs.size(), 3u);
  ExpectTrains(runs[0], IsProjector);
  ExpectTrains(runs[1], [](const std::string& name) { return !IsEncoder(name); });
  ExpectTrains(runs[2], [](const std::string&) { return true; });
  ExpectFollows(runs[1], runs[0]);
  ExpectFollows(runs[2], runs[1]);
  for (size_t i = 0; i < runs.size(); ++i) {
    std::printf("stage %zu: loss %.4f to %.4f\n", i + 1, runs[i].steps.front().loss, runs[i].steps.back().loss);
  }
}

TEST(Stages, IconsTrainThroughThreeStages) {
  const std::string shard = InBuild("icons/icons-000000.tar");
  if (!std::ifstream(shard)) GTEST_SKIP() << "the target icons was not built";
  // Short: a warmup of one step.
  const std::vector<std::string> data = {"data.sources=[{kind: webdataset, shards: " + shard + "}]",
                                         "data.index=" + ::testing::TempDir() + "icons_index",
                                         "budget.learning_rate.warmup_samples=8"};
  const std::vector<TrainingRun> runs =
      TrainStages({{"recipes/icons_stage1.yaml", Join(data, EncoderOn(1, 1), LanguageOn(1, 1, 1, 1))},
                   {"recipes/icons_stage2.yaml", Join(data, EncoderOn(2, 2), LanguageOn(2, 2, 2, 2))},
                   {"recipes/icons_stage3.yaml", Join(data, EncoderOn(2, 1), LanguageOn(0, 2, 1, 2))}},
                  8);
  ExpectThreeStages(runs);
  if (HasFailure()) return;
  // The first stage moves the loss little: its language model was never trained, so no projector can make it read.
  for (size_t i = 1; i < runs.size(); ++i) EXPECT_LT(runs[i].steps.back().loss, runs[i].steps.front().loss);
  EXPECT_LT(runs[2].steps.back().loss, 0.8 * runs[0].steps.front().loss);
}

// The same three stages on one rank and, each on another layout, on several: the curves agree over all of them.
TEST(Stages, EveryStageTrainsTheCurveOfOneRank) {
  const std::vector<std::string> fp64 = {"precision.params=fp64"};
  const std::string encoder = "modules.radio_encoder.train.backbone=", language = "modules.language.train.backbone=";
  const std::vector<std::vector<std::string>> trains = {
      {encoder + "frozen", language + "frozen"}, {encoder + "frozen"}, {}};
  const std::vector<std::vector<std::string>> layouts = {Join(EncoderOn(2, 1), LanguageOn(2, 2, 2, 2)),
                                                         Join(EncoderOn(4, 2), LanguageOn(0, 4, 2, 4)),
                                                         Join(EncoderOn(3, 1), LanguageOn(3, 2, 1, 1))};
  std::vector<Stage> alone, spread;
  for (size_t i = 0; i < trains.size(); ++i) {
    alone.push_back({kTinyRecipe, Join(fp64, trains[i])});
    spread.push_back({kTinyRecipe, Join(fp64, trains[i], layouts[i])});
  }
  constexpr int kSteps = 10;
  const std::vector<TrainingRun> one = TrainStages(alone, kSteps), many = TrainStages(spread, kSteps);
  ExpectThreeStages(one);
  ExpectThreeStages(many);
  if (HasFailure()) return;
  for (size_t i = 0; i < one.size(); ++i) {
    const Comparison comparison = Compare(many[i], one[i], 1e-9);
    EXPECT_FALSE(comparison.parted_at);
    for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
    std::printf("stage %zu, worst: loss %.1e, module norm %.1e, gradient at the last step %.1e\n", i + 1,
                comparison.worst_loss, comparison.worst_norm, comparison.worst_gradient_last);
  }
}

// Freezing leaves gradients out and changes none: before the first update, a weight that is trained has the gradient
// that it has where everything is trained. (Without auxiliary loss and crops, which a frozen part does not have.)
TEST(Frozen, ChangesNoGradientOfWhatIsTrained) {
  const std::string encoder = "modules.radio_encoder.train.", language = "modules.language.train.";
  const std::vector<std::string> same = {"precision.params=fp64", "models.radio_vit_tiny.positions=interpolate",
                                         "models.hybrid_moe_tiny.moe.aux_loss=0"};
  const std::vector<std::string> layout = Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2));
  const auto train = [&](const std::vector<std::string>& frozen) {
    return Launch({kTinyRecipe, Join(same, layout, frozen), 1, ""});
  };
  const TrainingRun all = train({});
  ASSERT_EQ(all.exit_code, 0) << all.output;
  const std::string backbone = encoder + "backbone=frozen", projection = encoder + "projection=frozen",
                    model = language + "backbone=frozen";
  for (const std::vector<std::string>& frozen : std::vector<std::vector<std::string>>{
           {backbone}, {model}, {projection}, {backbone, model}, {backbone, projection}, {projection, model}}) {
    SCOPED_TRACE(frozen.front() + " " + frozen.back());
    const TrainingRun run = train(frozen);
    ASSERT_EQ(run.exit_code, 0) << run.output;
    EXPECT_EQ(run.steps.at(0).loss, all.steps.at(0).loss);
    EXPECT_FALSE(run.gradients_first.empty());
    EXPECT_LT(run.gradients_first.size(), all.gradients_first.size());
    for (const auto& [name, gradient] : run.gradients_first)
      EXPECT_LE(Distance(gradient, all.gradients_first.at(name)), 1e-12) << name;
  }
}

}  // namespace
}  // namespace planwright::testing
