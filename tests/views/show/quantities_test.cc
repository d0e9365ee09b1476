// Quantities, character by character.
#include "planner/views/show/quantities.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planwright {
namespace {

TEST(Quantities, HoursKeepAllDigitsBeforeThePoint) {
  EXPECT_EQ(HoursText(0.83333), "0.8333");
  EXPECT_EQ(HoursText(304.67), "304.7");
  EXPECT_EQ(HoursText(80431.2), "80,431");
  EXPECT_EQ(HoursText(1e15), "1,000,000,000,000,000");
  EXPECT_EQ(HoursText(2e15), "more than 1,000,000,000,000,000");
  EXPECT_EQ(HoursText(1e300), "more than 1,000,000,000,000,000") << "no int64_t";
}

TEST(Quantities, HoursOfLessThanAMinuteAreSeconds) {
  EXPECT_EQ(LongTimeText(7.909e-06), "28.5 ms");
  EXPECT_EQ(LongTimeText(0.01), "36 s");
  EXPECT_EQ(LongTimeText(0.02), "0.02 h");
  EXPECT_EQ(LongTimeText(HUGE_VAL), "unknown");
}

// No figure is infinite, or none: it is not known.
TEST(Quantities, ThatAreNoNumbersAreUnknown) {
  for (const double value : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const std::string& text : {FlopText(value), SecondsText(value), HoursText(value), PercentOf(value, 1, 1),
                                    PercentOf(value, value, 0), DigitsText(value, 5)})
      EXPECT_EQ(text, "unknown");
  }
  EXPECT_EQ(PercentOf(1, std::nan(""), 1), "unknown");
  EXPECT_EQ(PercentOf(1, 8, 1), "12.5 %");
  EXPECT_EQ(PercentOf(1, 3, 0), "33 %");
  EXPECT_EQ(PercentOf(0, 0, 1), "0.0 %");
  EXPECT_EQ(DigitsText(8214.312, 5), "8214.3");
  EXPECT_EQ(SecondsText(1e40), "1e+40 s");
  EXPECT_EQ(FlopText(1e40), "1e+22 EFLOP");
}

}  // namespace
}  // namespace planwright
