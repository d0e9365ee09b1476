#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "planner/base/random/philox.h"

namespace planwright {
namespace {

// Written out once more: double to float, then float to bf16, to nearest, ties to even.
uint16_t Rounded(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t below = bits & 0xffff, kept = bits >> 16;
  return static_cast<uint16_t>(kept + (below > 0x8000 || (below == 0x8000 && kept % 2 == 1)));
}

// The number of draws that are not Normal's.
int64_t Wrong(const Philox& draws, uint64_t first, int64_t count, double scale) {
  constexpr uint16_t kUntouched = 0x7fc1;  // a NaN
  std::vector<uint16_t> drawn(static_cast<size_t>(count) + 1, kUntouched);
  draws.NormalsBf16(first, count, scale, drawn.data());
  int64_t wrong = drawn.back() != kUntouched;
  for (int64_t i = 0; i < count; ++i)
    wrong += drawn[static_cast<size_t>(i)] != Rounded(scale * draws.Normal(first + static_cast<uint64_t>(i)));
  return wrong;
}

// Among four million draws are thousands at the borders of each approximation, and 8000 that are computed in fp64.
TEST(NormalsBf16, AreTheRoundedDraws) {
  EXPECT_EQ(Wrong(Philox(1234, "language.layers.3.mixer.in_proj.weight"), 0, 1 << 22, 0.02), 0);
  EXPECT_EQ(Wrong(Philox(uint64_t{5} << 40 | 7, "b"), 12345, 1 << 20, -0.0037), 0);
}

TEST(NormalsBf16, AnyFirstAndAnyCount) {
  const Philox draws(77, "a");
  // The lower word of the counter overflows within a block, at any place of it.
  for (uint64_t first = (uint64_t{1} << 32) - 70; first < (uint64_t{1} << 32) + 3; ++first)
    EXPECT_EQ(Wrong(draws, first, 130, 1), 0) << first;
  for (int64_t count = 0; count < 200; ++count) EXPECT_EQ(Wrong(draws, 1000, count, 0.5), 0) << count;
}

TEST(NormalsBf16, AnyScale) {
  const Philox draws(9, "scales");
  for (const double scale : {0.0, 1e-42, 1e-38, 1e-30, 1e-19, 1.0, 3.0, 1e19, 1e30, 1e38})
    EXPECT_EQ(Wrong(draws, 3, 5000, scale), 0) << scale;
}

}  // namespace
}  // namespace planwright
