// Rounding of weights, compared with a plain search for the nearest number.
#include "planner/exchange/convert.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace planwright {
namespace {

template <typename From, typename To>
std::vector<To> Converted(DType from_type, const std::vector<From>& from, DType to_type) {
  std::vector<To> to(from.size());
  ConvertNumbers(from_type, std::as_bytes(std::span(from)), to_type, std::as_writable_bytes(std::span(to)));
  return to;
}

double OfBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// The bf16 that is nearest to the number; of two, the one whose last bit is 0.
uint16_t Nearest(double number) {
  // The bf16 numbers of one sign ascend with their bits.
  uint16_t below = 0;  // towards zero
  for (int bit = 14; bit >= 0; --bit) {
    const auto larger = static_cast<uint16_t>(below | 1 << bit);
    if (larger < 0x7f80 && OfBf16(larger) <= std::fabs(number)) below = larger;
  }
  if (std::signbit(number)) below |= 0x8000;
  const auto above = static_cast<uint16_t>(below + 1);
  // What lies beyond the largest bf16 counts as that far again.
  const double high = std::isinf(OfBf16(above)) ? std::copysign(0x1p128, number) : OfBf16(above);
  const double down = std::fabs(number - OfBf16(below)), up = std::fabs(high - number);
  if (down != up) return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

TEST(Convert, RoundsFp32ToTheNearestBf16) {
  std::vector<float> numbers = {0.0F,          -0.0F,     1.0F,   1.00390625F, 1.01171875F, -1.00390625F,
                                3.3895314e38F, 3.395e38F, 1e-40F, -1e-45F,     0x1p-126F,   65504.0F};
  std::mt19937 random(1);
  while (numbers.size() < 100'000) {
    const auto number = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(number)) numbers.push_back(number);
  }
  const auto bf16 = Converted<float, uint16_t>(DType::kFp32, numbers, DType::kBf16);
  for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(bf16[i], Nearest(numbers[i])) << numbers[i];
}

TEST(Convert, RoundsFp64ToTheNearestBf16Once) {
  std::vector<double> numbers = {1 + 0x1p-8 + 0x1p-40,
                                 1 + 0x1p-8,
                                 1 + 0x1p-8 - 0x1p-40,
                                 1 + 0x3p-8 - 0x1p-52,
                                 -1 - 0x1p-8 - 0x1p-52,
                                 0x1.fefffffffp127,
                                 0x1.ffp127,
                                 0x1p-134,
                                 0x1.0000001p-134,
                                 -0x1p-200,
                                 1e-310,
                                 0.0,
                                 -0.0,
                                 1e300,
                                 -1e300};
  std::mt19937_64 random(1);
  // Around points that are halfway between two bf16 numbers, at distances that fp32 does not see.
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = static_cast<uint16_t>(random() % 0x7f7e);
    const double middle = (OfBf16(bits) + OfBf16(static_cast<uint16_t>(bits + 1))) / 2;
    const double tiny = std::ldexp(middle, -30 - static_cast<int>(random() % 22));
    for (const double number : {middle, middle + tiny, middle - tiny, -middle - tiny}) numbers.push_back(number);
  }
  while (numbers.size() < 200'000) {
    const auto number = std::bit_cast<double>(random());
    if (std::isfinite(number)) numbers.push_back(number);
  }
  const auto bf16 = Converted<double, uint16_t>(DType::kFp64, numbers, DType::kBf16);
  for (size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(bf16[i], Nearest(numbers[i])) << numbers[i];
  EXPECT_EQ(OfBf16(bf16[0]), 1.0078125);
}

TEST(Convert, WhatIsTooLargeBecomesInfiniteAndNanStaysNan) {
  const std::vector<float> numbers = {3.4e38F, -3.4e38F, INFINITY, NAN, std::bit_cast<float>(0x7f800001U)};
  const auto bf16 = Converted<float, uint16_t>(DType::kFp32, numbers, DType::kBf16);
  EXPECT_EQ(OfBf16(bf16[0]), INFINITY);
  EXPECT_EQ(OfBf16(bf16[1]), -INFINITY);
  EXPECT_EQ(OfBf16(bf16[2]), INFINITY);
  EXPECT_TRUE(std::isnan(OfBf16(bf16[3])));
  EXPECT_TRUE(std::isnan(OfBf16(bf16[4])));
}

TEST(Convert, WideningChangesNoNumber) {
  std::vector<uint16_t> all(1 << 16);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  const auto fp32 = Converted<uint16_t, float>(DType::kBf16, all, DType::kFp32);
  const auto fp64 = Converted<uint16_t, double>(DType::kBf16, all, DType::kFp64);
  const auto back = Converted<double, uint16_t>(DType::kFp64, fp64, DType::kBf16);
  for (size_t i = 0; i < all.size(); ++i) {
    if (std::isnan(OfBf16(all[i]))) continue;
    ASSERT_EQ(fp32[i], OfBf16(all[i]));
    ASSERT_EQ(fp64[i], OfBf16(all[i]));
    ASSERT_EQ(back[i], all[i]);
  }
}

}  // namespace
}  // namespace planwright
