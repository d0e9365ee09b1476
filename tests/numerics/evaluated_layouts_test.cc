// Evaluations beside training give the same numbers on every layout and in `plan evaluate`, and leave no trace in what
// is trained (docs/training/evaluation.md). Real processes over Gloo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::IsEmpty;

constexpr double kFp64 = 1e-9;
constexpr int kSteps = 3;

// 8 samples a step: before the first step, after the second, and not after the third, which is not the last one of the
// budget. Neither number of samples fills its last round.
const std::vector<std::string> kEvaluation = {
    "evaluation={every_samples: 16, sets: [{name: held_out, samples: 11, seed: 4711}, {name: few, samples: 1, seed: "
    "5}]}"};

TrainingRun Train(const std::string& precision, const std::vector<std::string>& layout,
                  const std::vector<std::string>& more, bool probes = false) {
  return Launch({.recipe = kTinyRecipe,
                 .overrides = Join({"precision.params=" + precision}, layout, more),
                 .steps = kSteps,
                 .probes = probes});
}

const TrainingRun& OneRank() {
  static const TrainingRun run = Train("fp64", OneRankOnly(), kEvaluation, true);
  return run;
}

std::vector<std::string> OverridesOf(const std::string& name) {
  for (const Layout& layout : AllLayouts()) {
    if (layout.name == name) return layout.overrides;
  }
  ADD_FAILURE() << "no layout " << name;
  return {};
}

class EvaluationOn : public ::testing::TestWithParam<const char*> {};

TEST_P(EvaluationOn, GivesTheNumbersOfOneRank) {
  const TrainingRun& one = OneRank();
  ASSERT_EQ(one.exit_code, 0) << one.output;
  ASSERT_EQ(one.evaluations.size(), 2U);
  EXPECT_EQ(one.evaluations[0].step, 0);
  EXPECT_EQ(one.evaluations[1].step, 2);
  EXPECT_LT(one.evaluations[1].losses.at("held_out"), one.evaluations[0].losses.at("held_out"));
  const TrainingRun run = Train("fp64", OverridesOf(GetParam()), kEvaluation);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(CompareEvaluations(run, one, kFp64), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Layouts, EvaluationOn,
                         ::testing::Values("dp2_dp2", "ep4", "uneven", "colocated_4", "encoder_pp2_pp2", "pp2_cp2"),
                         [](const auto& info) { return std::string(info.param); });

// The same bits, not nearly the same numbers: an evaluation writes nothing that a step reads.
TEST(Evaluation, LeavesTrainingAsItIs) {
  for (const char* layout : {"", "ep4"}) {
    const std::vector<std::string> overrides = *layout == '\0' ? OneRankOnly() : OverridesOf(layout);
    const TrainingRun with = *layout == '\0' ? OneRank() : Train("fp64", overrides, kEvaluation, true);
    const TrainingRun without = Train("fp64", overrides, {}, true);
    ASSERT_EQ(with.exit_code, 0) << with.output;
    ASSERT_EQ(without.exit_code, 0) << without.output;
    EXPECT_THAT(without.evaluations, IsEmpty());
    ASSERT_EQ(with.steps.size(), without.steps.size());
    for (size_t i = 0; i < with.steps.size(); ++i) {
      EXPECT_EQ(with.steps[i].loss, without.steps[i].loss) << layout << " " << i;
      EXPECT_EQ(with.steps[i].grad_norm, without.steps[i].grad_norm) << layout << " " << i;
      EXPECT_EQ(with.steps[i].routing, without.steps[i].routing) << layout << " " << i;
    }
    ASSERT_EQ(with.parameters_last.size(), without.parameters_last.size());
    for (const auto& [name, expected] : without.parameters_last)
      EXPECT_EQ(Distance(with.parameters_last.at(name), expected), 0) << layout << " " << name;
  }
}

TEST(Evaluation, InBf16IsThatOfFp64UpToRounding) {
  const TrainingRun& exact = OneRank();
  const TrainingRun run = Train("bf16", OverridesOf("tp2_tp2"), kEvaluation);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_THAT(CompareEvaluations(run, exact, 5e-3), IsEmpty());
}

// A checkpoint of one layout is evaluated on others: the number is that of the run itself.
TEST(Evaluation, OfACheckpointIsThatOfTheRun) {
  std::string folder = (std::filesystem::temp_directory_path() / "planwright_evaluate_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::vector<std::string> common = Join({"precision.params=fp64"}, kEvaluation);
  const TrainingRun run = Launch({.recipe = kTinyRecipe,
                                  .overrides = Join(common, OverridesOf("ep2"), {"checkpoint.every_steps=2"}),
                                  .steps = 2,
                                  .run_dir = folder + "/run",
                                  .probes = false});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.evaluations.size(), 2U);
  for (const char* layout : {"one_and_one", "colocated_4"}) {
    std::string command = "'" + InBuild("bin/plan") + "' evaluate '" + folder + "/run' '" + InSource(kTinyRecipe) + "'";
    for (const std::string& override : Join(common, OverridesOf(layout))) command += " '" + override + "'";
    FILE* pipe = popen((command + " --json 2>'" + folder + "/errors'").c_str(), "r");
    std::string output(1 << 16, '\0');
    output.resize(fread(output.data(), 1, output.size(), pipe));
    ASSERT_EQ(pclose(pipe), 0) << layout << "\n" << output;
    const auto json = nlohmann::json::parse(output);
    EXPECT_EQ(json.at("step"), 2);
    for (const char* set : {"held_out", "few"}) {
      const double expected = run.evaluations[1].losses.at(set), found = json.at("sets").at(set).at("loss");
      EXPECT_NEAR(found, expected, kFp64 * expected) << layout << " " << set;
      EXPECT_EQ(json.at("sets").at(set).at("tokens"), run.evaluations[1].tokens.at(set));
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace planwright::testing
