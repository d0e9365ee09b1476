#include "planner/base/random/philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "planner/base/random/philox_block.h"

namespace planwright {
namespace {

// Known answers: philox4x32-10 in kat_vectors of the Random123 library.
TEST(Philox, KnownAnswers) {
  using Counter = philox4x32_ctr_t;
  EXPECT_EQ(philox4x32(Counter{}, philox4x32_key_t{}), (Counter{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ(philox4x32(PhiloxCounter(kOnes, kOnes), PhiloxKey(kOnes)),
            (Counter{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  EXPECT_EQ(philox4x32(PhiloxCounter(0x0370734413198a2e, 0x85a308d3243f6a88), PhiloxKey(0x299f31d0a4093822)),
            (Counter{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST(Philox, NameAndSeedAndIndexSelectTheDraw) {
  std::set<double> draws;
  for (const uint64_t seed : {1u, 2u}) {
    for (const char* name : {"a", "b", ""}) {
      for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
        draws.insert(Philox(seed, name).Uniform(index));
    }
  }
  EXPECT_EQ(draws.size(), 18u);
  EXPECT_EQ(Philox(7, "weight").Uniform(5), Philox(7, "weight").Uniform(5));
}

// The hash of "a" is FNV-1a's published 0xaf63dc4c8601ec8c; it fills the counter's upper half.
TEST(Philox, UniformIsTheFirstWordsOfTheBlock) {
  const philox4x32_ctr_t words = philox4x32(PhiloxCounter(0xaf63dc4c8601ec8c, 3), PhiloxKey((uint64_t{1} << 32) + 9));
  const uint64_t bits = (uint64_t{words[1]} << 32 | words[0]) >> 11;
  EXPECT_EQ(Philox((uint64_t{1} << 32) + 9, "a").Uniform(3), std::ldexp(static_cast<double>(bits), -53));
}

// Moments within five standard errors of 200,000 draws.
TEST(Philox, Moments) {
  constexpr int kDraws = 200000;
  const Philox stream(1234, "moments");
  double uniform = 0, normal = 0, square = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = stream.Uniform(i), z = stream.Normal(i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    uniform += u, normal += z, square += z * z, fourth += z * z * z * z;
  }
  const double error = 5 / std::sqrt(kDraws);
  EXPECT_NEAR(uniform / kDraws, 0.5, error * std::sqrt(1.0 / 12));
  EXPECT_NEAR(normal / kDraws, 0.0, error);
  EXPECT_NEAR(square / kDraws, 1.0, error * std::sqrt(2.0));
  EXPECT_NEAR(fourth / kDraws, 3.0, error * std::sqrt(96.0));
}

}  // namespace
}  // namespace planwright
