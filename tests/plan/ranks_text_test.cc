// Lists of ranks, character by character.
#include "planner/plan/ranks_text.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(RanksText, ShortensRuns) {
  EXPECT_EQ(RanksText({4}), "4");
  EXPECT_EQ(RanksText({4, 5}), "4-5");
  EXPECT_EQ(RanksText({4, 6}), "4, 6");
  EXPECT_EQ(RanksText({0, 1, 2, 3, 8, 10, 12}), "0-3, 8-12 by 2");
  EXPECT_EQ(RanksText({0, 2, 3, 7, 8, 20, 22, 50}, 2), "0, 2, ... 50");
}

}  // namespace
}  // namespace planwright
