// Which numbers of GPUs `--gpus` means, and what is refused.
#include "planner/search/results/gpu_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ProblemOf(const std::string& text) { return std::string(ReadGpuCounts(text).status().message()); }

TEST(GpuCounts, AreOneAListOrARange) {
  const auto one = ReadGpuCounts("264");
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->form, GpuCounts::Form::kOne);
  EXPECT_THAT(one->counts, ElementsAre(264));
  const auto list = ReadGpuCounts("128,264,256");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->form, GpuCounts::Form::kList);
  EXPECT_THAT(list->counts, ElementsAre(128, 264, 256));
  const auto range = ReadGpuCounts("64..512");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->form, GpuCounts::Form::kRange);
  EXPECT_THAT(range->counts, ElementsAre(64, 128, 256, 512));
  EXPECT_THAT(ReadGpuCounts("64..520")->counts, ElementsAre(64, 128, 256, 512, 520));
  EXPECT_THAT(ReadGpuCounts("1..3")->counts, ElementsAre(1, 2, 3));
}

TEST(GpuCounts, SayWhatIsWrong) {
  for (const char* text : {"", "0", "-8", "8x", "8,", "8,,16", "..8", "8..", "8...16", "1e3", "99999999999999999999"})
    EXPECT_THAT(ProblemOf(text), HasSubstr("option `--gpus` needs")) << text;
  EXPECT_THAT(ProblemOf("8,x"), HasSubstr("found `x` in `8,x`"));
  EXPECT_THAT(ProblemOf("512..64"), HasSubstr("a range from few to many"));
  EXPECT_THAT(ProblemOf("64..64"), HasSubstr("a range from few to many"));
  EXPECT_THAT(ProblemOf("8,16,8"), HasSubstr("names 8 twice"));
}

TEST(GpuCounts, AreWholeNodesOrAPartOfOne) {
  EXPECT_TRUE(CheckWholeNodes({0, 1, 3, 8, 16, 264}, 8).ok());
  EXPECT_THAT(std::string(CheckWholeNodes({8, 12, 16, 20}, 8).message()),
              HasSubstr("12, 20 GPUs are not whole nodes of 8"));
}

}  // namespace
}  // namespace planwright
