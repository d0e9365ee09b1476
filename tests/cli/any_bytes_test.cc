// On any input, `plan` ends by itself with status 0, 1 or 2, within 256 MiB and a bounded amount of work. The unit of
// work is what a valid recipe of 8 ranks costs on this machine, so that slow machines pass too. ./dev bench times the
// same inputs and checks that each takes less than a second.
#include "tests/cli/any_bytes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "tests/cli/limited_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr rlim_t kMemory = rlim_t{256} << 20;
constexpr double kMostRecipes = 400;  // most work, in valid recipes: ten times what the worst input takes

LimitedEnd RunPlan(const std::vector<std::string>& arguments) {
  return RunLimited(InBuild("bin/plan"), arguments, kMemory);
}

// Processor seconds of a valid recipe. The least of several runs: other processes can only add to it.
double SecondsOfARecipe() {
  static const double seconds = [] {
    const std::vector<std::string> arguments = {"validate", InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml")};
    double least = RunPlan(arguments).seconds;
    for (int i = 0; i < 8; ++i) least = std::min(least, RunPlan(arguments).seconds);
    return least;
  }();
  return seconds;
}

class AnyBytes : public ::testing::TestWithParam<InputKind> {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "bytesXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

TEST_P(AnyBytes, ComeToAnEnd) {
  int inputs = 0;
  GetParam().make(folder_, [&](const AnyInput& input) {
    ++inputs;
    std::string said = input.what;
    for (const std::string& argument : input.arguments) said += " " + argument;
    SCOPED_TRACE(said.substr(0, 300));
    const LimitedEnd end = RunPlan(input.arguments);
    ASSERT_TRUE(WIFEXITED(end.status)) << "killed by signal " << WTERMSIG(end.status);
    EXPECT_GE(WEXITSTATUS(end.status), input.refused ? 1 : 0);
    EXPECT_LE(WEXITSTATUS(end.status), 2);
    EXPECT_LE(end.seconds, kMostRecipes * SecondsOfARecipe());
  });
  EXPECT_GT(inputs, 1);
}

// Files that a recipe names may be larger than what the limits of recipes are for: what they cost grows with them
// alone. A tree of JSON would take a dozen times their text.
TEST(PublishedWeights, TakeAFewTimesTheTextOfTheirHeaders) {
  constexpr int kTensors = 250'000;
  std::string pattern = ::testing::TempDir() + "headersXXXXXX";
  const std::string folder = mkdtemp(pattern.data());
  std::string header = "{", map = R"({"weight_map": {)";
  for (int i = 0; i < kTensors; ++i) {
    const std::string name = "\"backbone.layers." + std::to_string(i) + ".mixer.weight\": ";
    header += (i == 0 ? "" : ", ") + name + R"({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})";
    map += (i == 0 ? "" : ", ") + name + R"("model-00001-of-00001.safetensors")";
  }
  header += "}";
  const uint64_t length = header.size();
  std::ofstream(folder + "/model-00001-of-00001.safetensors", std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&length), sizeof length) << header;
  std::ofstream(folder + "/model.safetensors.index.json") << map << "}}";
  const LimitedEnd end =
      RunLimited(InBuild("bin/plan"),
                 {"validate", InSource("recipes/nemotron_moe_lm_tiny.yaml"), "initialize={from: " + folder + "}"},
                 rlim_t{4} << 30);
  ASSERT_TRUE(WIFEXITED(end.status));
  EXPECT_EQ(WEXITSTATUS(end.status), 1) << "none of them fits";
  EXPECT_LE(end.megabytes * 1e6, 6.0 * static_cast<double>(header.size() + map.size()));
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyBytes, ::testing::ValuesIn(InputKinds()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace planwright::testing
