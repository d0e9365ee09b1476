// The other sizes and surroundings with which a recipe is measured.
#include "planner/run/measure/sizes_around.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

const std::string kOneRank = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
const std::string kTwoGpus = InSource("recipes/nemotron_moe_vlm_20l_2g_text_only.yaml");

bool HasSideStreams(const Plan& plan) {
  for (const Group& group : plan.groups) {
    if (group.streams.size() > 1) return true;
  }
  return false;
}

TEST(SizesAround, OneRankHasNoCommunications) {
  EXPECT_THAT(SizesAround(testing::CompiledFile(kOneRank)),
              ElementsAre(ElementsAre("batch.sequence_length=96"), ElementsAre("batch.sequence_length=24"),
                          ElementsAre("batch.micro_samples=2")));
}

// A plan without overlap is measured with some, and the reverse: each is a plan of the other sort.
TEST(SizesAround, CommunicationsAreMeasuredBesideWorkAndWithout) {
  const std::vector<std::string> without = {"gradients.overlap_reduce=false", "gradients.overlap_gather=false",
                                            "modules.language.parallel.overlap_dispatch=false"};
  const Plan overlapped = testing::CompiledFile(kTwoGpus);
  ASSERT_TRUE(HasSideStreams(overlapped));
  EXPECT_THAT(SizesAround(overlapped), Contains(without));
  const Plan alone = testing::CompiledFile(kTwoGpus, without);
  EXPECT_FALSE(HasSideStreams(alone));
  const std::vector<std::string> with = {"gradients.overlap_reduce=true"};
  EXPECT_THAT(SizesAround(alone), Contains(with));
  std::vector<std::string> both = without;
  both.insert(both.end(), with.begin(), with.end());
  EXPECT_TRUE(HasSideStreams(testing::CompiledFile(kTwoGpus, both)));
}

}  // namespace
}  // namespace planwright
