// Adapters train as PEFT's do: ten steps on toys of transformers in fp64, every loss and every gradient
// (tests/interop/adapters.py wrote them), on several layouts. And a run with adapters that goes on from its checkpoint,
// which has the adapters alone, has the bits of one that never stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/numerics/tensors.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr double kLosses = 1e-11, kGradients = 1e-9;
constexpr int kSteps = 10;

std::string RecipeOf(const std::string& toy) { return "tests/golden/adapters_" + toy + "/oracle.yaml"; }

// The gradients that a run has of one step, against PEFT's.
void ExpectGradients(const Tensors& found, const Tensors& expected, int step) {
  const std::string begin = "gradients/" + std::to_string(step) + "/";
  size_t compared = 0;
  double worst = 0;
  for (const auto& [name, tensor] : expected) {
    if (!name.starts_with(begin)) continue;
    const auto ours = found.find(name.substr(begin.size()));
    ASSERT_NE(ours, found.end()) << name << " is not there";
    const double distance = Distance(ours->second, tensor);
    EXPECT_LE(distance, kGradients) << name;
    worst = std::max(worst, distance);
    ++compared;
  }
  EXPECT_EQ(compared, found.size()) << "what is frozen has no gradient";
  EXPECT_GT(compared, 0U);
  std::printf("step %d: worst gradient %.1e of %zu\n", step + 1, worst, compared);
}

void ExpectThoseOfPeft(const std::string& toy, const std::vector<std::string>& layout, int steps = kSteps) {
  const Tensors expected = ReadTensors(InSource("tests/golden/adapters_" + toy + "/expected.safetensors"));
  const TrainingRun run = Launch({RecipeOf(toy), layout, steps, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), static_cast<size_t>(steps));
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const double wanted = expected.at("losses").values[i];
    EXPECT_NEAR(run.steps[i].loss, wanted, kLosses * wanted) << "step " << i + 1;
  }
  ExpectGradients(run.gradients_first, expected, 0);
  ExpectGradients(run.gradients_last, expected, steps - 1);
}

std::vector<std::string> On(int ranks, const std::vector<AxisSize>& axes) {
  return Join(LanguageOn(0, ranks, 1, 1), Parallel("language", axes));
}

TEST(Llama, OneRank) { ExpectThoseOfPeft("llama", {}); }
TEST(Llama, Tp2Cp2) { ExpectThoseOfPeft("llama", On(4, {{"tp", 2}, {"cp", 2}})); }
TEST(Llama, Tp4OfTwoKeyHeads) { ExpectThoseOfPeft("llama", On(4, {{"tp", 4}})); }
TEST(Llama, Pp2Dp2) { ExpectThoseOfPeft("llama", Join(On(4, {{"pp", 2}}), {"models.llama.pattern=\"*-*|-\""})); }
TEST(Nano, OneRank) { ExpectThoseOfPeft("nano", {}); }
TEST(Nano, Tp2Ep2) { ExpectThoseOfPeft("nano", On(2, {{"tp", 2}, {"ep", 2}})); }
TEST(Nano, Cp2Ep2) { ExpectThoseOfPeft("nano", On(2, {{"cp", 2}, {"ep", 2}})); }
TEST(Nano, Pp2) { ExpectThoseOfPeft("nano", Join(On(2, {{"pp", 2}}), {"models.nano.pattern=MEM|*E"})); }

class EachStep : public ::testing::TestWithParam<int> {};
TEST_P(EachStep, HasTheGradientsOfPeft) {
  ExpectThoseOfPeft("llama", On(4, {{"tp", 2}, {"pp", 2}}), GetParam());
  ExpectThoseOfPeft("nano", On(4, {{"tp", 2}, {"ep", 2}}), GetParam());
}
INSTANTIATE_TEST_SUITE_P(Soak, EachStep, ::testing::Range(1, kSteps + 1),
                         [](const auto& info) { return "step_" + std::to_string(info.param); });

// --- Checkpoints.

int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() == ".safetensors") bytes += static_cast<int64_t>(file.file_size());
  }
  return bytes;
}

TEST(Checkpoints, HoldAdaptersAloneAndGoOn) {
  const std::vector<std::string> layout = Join(On(2, {{"tp", 2}}), {"checkpoint.every_steps=4"});
  const TrainingRun whole = Launch({RecipeOf("llama"), layout, 8, ""});
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const std::string folder = ::testing::TempDir() + "adapters_resume";
  std::filesystem::remove_all(folder);
  const auto launch = [&](const std::vector<std::string>& overrides, int steps) {
    return Launch({.recipe = RecipeOf("llama"), .overrides = overrides, .steps = steps, .run_dir = folder});
  };
  const TrainingRun first = launch(layout, 4);
  ASSERT_EQ(first.exit_code, 0) << first.output;
  // In fp64 each weight has itself and two moments: all of the adapters, and no weight that they stand on.
  int64_t adapters = 0;
  for (const auto& [name, tensor] : first.gradients_last) adapters += static_cast<int64_t>(tensor.values.size());
  EXPECT_LT(BytesIn(folder + "/checkpoints"), 3 * 8 * adapters + 16384);
  // Another layout loads it too.
  const std::string elsewhere = folder + "_elsewhere";
  std::filesystem::remove_all(elsewhere);
  std::filesystem::copy(folder, elsewhere, std::filesystem::copy_options::recursive);
  const TrainingRun other =
      Launch({.recipe = RecipeOf("llama"),
              .overrides = Join(On(4, {{"pp", 2}}), {"models.llama.pattern=\"*-*|-\"", "checkpoint.every_steps=4"}),
              .steps = 8,
              .run_dir = elsewhere});
  ASSERT_EQ(other.exit_code, 0) << other.output;
  for (const auto& [name, tensor] : whole.parameters_last)
    EXPECT_LE(Distance(other.parameters_last.at(name), tensor), kGradients) << name;
  // The same has the same bits.
  const TrainingRun rest = launch(layout, 8);
  ASSERT_EQ(rest.exit_code, 0) << rest.output;
  EXPECT_THAT(rest.output, ::testing::HasSubstr("the adapters stand on the weights of "));
  ASSERT_FALSE(rest.parameters_last.empty());
  for (const auto& [name, tensor] : whole.parameters_last)
    EXPECT_EQ(rest.parameters_last.at(name).values, tensor.values) << name;
}

TEST(Checkpoints, RefuseAnotherBase) {
  const std::string folder = ::testing::TempDir() + "adapters_other_base";
  std::filesystem::remove_all(folder);
  const auto launch = [&](const std::string& base, int steps) {
    return Launch({.recipe = RecipeOf("llama"),
                   .overrides = {"checkpoint.every_steps=2", "initialize={sources: [{for: language, from: " + base +
                                                                 "}, {for: language.adapter, from: drawn}]}"},
                   .steps = steps,
                   .run_dir = folder,
                   .options = {"--accept-changes"}});
  };
  const std::string first = InSource("tests/golden/llama_oracle/weights.safetensors");
  const TrainingRun run = launch(first, 2);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const TrainingRun other = launch("drawn", 4);
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.output, ::testing::HasSubstr("stand on other weights than those that the plan names"));
  const TrainingRun same = launch(first, 4);
  EXPECT_EQ(same.exit_code, 0) << same.output;
}

}  // namespace
}  // namespace planwright::testing
