// The results of another implementation of the whole model (tests/golden/vlm_oracle, published_oracle) are reproduced
// in the ordinary way: a recipe, published weights, a recorded batch, --probe. Its gradients are of the summed loss;
// ours are divided by the number of loss tokens.
#include "tests/numerics/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

void ExpectOracle(const std::vector<std::string>& layout, const std::string& recipe = kOracleRecipe) {
  const TrainingRun run = Launch({recipe, layout, 0, ""});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.steps.size(), 1u);
  const OracleDifferences found = CompareWithOracle({.values = run.values_first,
                                                     .gradients = run.gradients_first,
                                                     .loss = run.steps[0].loss,
                                                     .mean_square = run.steps[0].bridge_mean_square.begin()->second},
                                                    recipe);
  EXPECT_THAT(found.beyond, ::testing::IsEmpty());
  EXPECT_EQ(found.outputs, recipe == kOracleRecipe ? 19u : 15u);
  EXPECT_EQ(found.gradients, run.gradients_first.size());
  std::printf("worst output %.1e, worst gradient %.1e of %zu\n", found.worst_output, found.worst_gradient,
              found.gradients);
}

TEST(Oracle, OneRank) { ExpectOracle({}); }
TEST(Oracle, OneRankBothSamplesAtOnce) { ExpectOracle({"batch.micro_samples=2"}); }
TEST(Oracle, Tp2Tp2WithEp2) { ExpectOracle(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2))); }
TEST(Oracle, Cp2WithEp2) {
  ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), Parallel("language", {{"cp", 2}})));
}
TEST(Oracle, ExpertTp2WithEp2) {
  ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 2), Parallel("language", {{"expert_tp", 2}})));
}
TEST(Oracle, EncoderCp2) {
  ExpectOracle(Join(EncoderOn(2, 1), Parallel("radio_encoder", {{"cp", 2}}), LanguageOn(2, 1, 1, 1)));
}
TEST(Oracle, Dp2Dp2) { ExpectOracle(Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))); }
TEST(Oracle, Pp2) { ExpectOracle(Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), Parallel("language", {{"pp", 2}}))); }
TEST(Oracle, EncoderPp3AndPp4) {
  ExpectOracle(Join(Join(EncoderOn(3, 1), Parallel("radio_encoder", {{"pp", 3}})), LanguageOn(3, 4, 1, 1),
                    Parallel("language", {{"pp", 4}})));
}
TEST(Oracle, PpCpAndExpertTpTogether) {
  ExpectOracle(
      Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 1), Parallel("language", {{"pp", 2}, {"cp", 2}, {"expert_tp", 2}})));
}

TEST(Oracle, PublishedModelOnOneRank) { ExpectOracle({}, kPublishedOracleRecipe); }
TEST(Oracle, PublishedModelTp2WithEp2) {
  ExpectOracle(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), kPublishedOracleRecipe);
}

}  // namespace
}  // namespace planwright::testing
