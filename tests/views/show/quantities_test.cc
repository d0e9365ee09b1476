// Quantities, character by character.
#include "planner/views/show/quantities.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(Quantities, HoursKeepAllDigitsBeforeThePoint) {
  EXPECT_EQ(HoursText(0.83333), "0.8333");
  EXPECT_EQ(HoursText(304.67), "304.7");
  EXPECT_EQ(HoursText(80431.2), "80,431");
}

}  // namespace
}  // namespace planwright
