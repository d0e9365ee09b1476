// What validates trains the curve of one rank: recipes drawn at random, in fp64. Real processes over Gloo.
#include "tests/numerics/random_layouts.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr double kFp64 = 1e-9;
constexpr int kSteps = 3;

void ExpectTheCurveOfOneRank(const Layout& layout) {
  std::string words = layout.recipe;
  for (const std::string& word : Join(layout.training, layout.overrides)) words += " '" + word + "'";
  SCOPED_TRACE(words);
  std::printf("%s\n", words.c_str());
  const std::vector<std::string> fp64 = {"precision.params=fp64"};
  const TrainingRun one = Launch({layout.recipe, Join(fp64, layout.one_rank, layout.training), kSteps, ""});
  ASSERT_EQ(one.exit_code, 0) << one.output;
  const TrainingRun run = Launch({layout.recipe, Join(fp64, layout.training, layout.overrides), kSteps, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const Comparison comparison = Compare(run, one, kFp64);
  for (const std::string& difference : comparison.differences) ADD_FAILURE() << difference;
  EXPECT_FALSE(comparison.parted_at) << "routing parts at step " << *comparison.parted_at + 1;
  std::printf("worst: loss %.1e, module norm %.1e, gradient at the first step %.1e, at the last %.1e\n",
              comparison.worst_loss, comparison.worst_norm, comparison.worst_gradient_first,
              comparison.worst_gradient_last);
}

class RandomRecipe : public ::testing::TestWithParam<int> {};
TEST_P(RandomRecipe, TrainsTheCurveOfOneRank) {
  ExpectTheCurveOfOneRank(RandomLayout(static_cast<uint64_t>(GetParam())));
}

// Llama, Qwen3, Qwen3-MoE, and Qwen3 behind an encoder.
class RandomDecoder : public ::testing::TestWithParam<int> {};
TEST_P(RandomDecoder, TrainsTheCurveOfOneRank) {
  ExpectTheCurveOfOneRank(RandomLayout(static_cast<uint64_t>(GetParam()), DrawnFamily::kDecoder));
}

class RandomAdapter : public ::testing::TestWithParam<int> {};
TEST_P(RandomAdapter, TrainsTheCurveOfOneRank) {
  const DrawnFamily family = GetParam() % 2 == 0 ? DrawnFamily::kHybrid : DrawnFamily::kDecoder;
  ExpectTheCurveOfOneRank(RandomAdapters(static_cast<uint64_t>(GetParam()), family));
}

const auto kSeed = [](const auto& info) { return "seed_" + std::to_string(info.param); };
INSTANTIATE_TEST_SUITE_P(Fixed, RandomRecipe, ::testing::Range(1, 13), kSeed);
INSTANTIATE_TEST_SUITE_P(Fixed, RandomAdapter, ::testing::Range(1, 5), kSeed);
INSTANTIATE_TEST_SUITE_P(Soak, RandomAdapter, ::testing::Range(1000, 1100), kSeed);
INSTANTIATE_TEST_SUITE_P(Soak, RandomRecipe, ::testing::Range(1000, 1100), kSeed);
INSTANTIATE_TEST_SUITE_P(Soak, RandomDecoder, ::testing::Range(1000, 1100), kSeed);

}  // namespace
}  // namespace planwright::testing
