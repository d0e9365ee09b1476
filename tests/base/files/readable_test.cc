#include "planner/base/files/readable.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(Readable, TimesAndNumbers) {
  EXPECT_EQ(DurationText(-1), "0 s");
  EXPECT_EQ(DurationText(0.0002), "under 1 ms");
  EXPECT_EQ(DurationText(0.0123), "12.3 ms");
  EXPECT_EQ(DurationText(0.25), "0.25 s");
  EXPECT_EQ(DurationText(9.999), "10.0 s");
  EXPECT_EQ(DurationText(59.97), "1 min 00 s");
  EXPECT_EQ(DurationText(185), "3 min 05 s");
  EXPECT_EQ(DurationText(8040), "2 h 14 min");
  EXPECT_EQ(DurationText(3 * 86400 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(DurationText(1e300), "for ever");
  EXPECT_EQ(LargeText(7), "7");
  EXPECT_EQ(LargeText(5.625), "5.62");
  EXPECT_EQ(LargeText(999.9), "1.00 thousand");
  EXPECT_EQ(LargeText(45'812), "45.8 thousand");
  EXPECT_EQ(LargeText(1.966e6), "1.97 million");
  EXPECT_EQ(UtcText(absl::FromUnixSeconds(1700000000)), "2023-11-14T22:13:20Z");
}

}  // namespace
}  // namespace planwright
