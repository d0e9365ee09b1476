// Normal draws in bf16, many at once. Box-Muller in fp64 takes a logarithm and a cosine, 50 ns a draw, and all but
// eight bits of the result are dropped. So the draw is first computed in fp32, with a bound of the error. Nearly always
// every number within the bound rounds to the same bf16 number, and then that is the result. Else (one draw of 500) the
// draw is computed in fp64. So the bits are those of Philox::Normal, whatever instructions the fp32 form is compiled
// to.
#include <algorithm>
#include <bit>
#include <cmath>

#include "planner/base/random/philox.h"
#include "planner/base/random/philox_block.h"

// The loops are compiled for three widths of vectors, and the processor decides when the program starts.
#if defined(__x86_64__) && defined(__GNUC__)
#define PLANWRIGHT_EVERY_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PLANWRIGHT_EVERY_WIDTH
#endif

namespace planwright {
namespace {

constexpr int kBlock = 64;  // draws at a time; their words and results stay in the first cache

// The wider half of each of the two uniforms of a block (philox.cc): its upper 32 bits.
struct Words {
  uint32_t radius[kBlock], angle[kBlock];
};

// Draws whose result is not sure are marked. `any` is not 0 if there are such draws.
struct Rounded {
  uint16_t value[kBlock];
  uint8_t unsure[kBlock];
  uint32_t any;
};

PLANWRIGHT_EVERY_WIDTH void DrawWords(philox4x32_ctr_t first, philox4x32_key_t key, Words& words) {
  for (int i = 0; i < kBlock; ++i) {
    const uint32_t low = first[0] + static_cast<uint32_t>(i);
    const philox4x32_ctr_t counter = {{low, first[1] + (low < first[0]), first[2], first[3]}};
    const philox4x32_ctr_t drawn = philox4x32(counter, key);
    words.radius[i] = drawn[1];
    words.angle[i] = drawn[3];
  }
}

// A positive or negative number to bf16, to nearest, ties to even.
inline uint32_t RoundToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

// ln(1 + f) / f for f from 1/sqrt(2) - 1 to sqrt(2) - 1; relative error below 2^-25.
inline float LogarithmOverArgument(float f) {
  constexpr float kCoefficients[] = {0.0874394535f, -0.143773306f, 0.149490955f, -0.16560696f, 0.199569775f,
                                     -0.250021535f, 0.333341833f,  -0.49999987f, 0.999999974f};
  float sum = 0;
  for (const float coefficient : kCoefficients) sum = sum * f + coefficient;
  return sum;
}

// sin(2 pi x) / x for |x| up to 1/4; relative error below 2^-27.
inline float SineOverTurns(float x) {
  constexpr float kCoefficients[] = {39.7607221f, -76.5812846f, 81.6024807f, -41.3416807f, 6.28318528f};
  float sum = 0;
  for (const float coefficient : kCoefficients) sum = sum * (x * x) + coefficient;
  return sum;
}

// The error, by its parts, relative to the result. The argument u of the logarithm is known to 2^-31, 1 - u to 2^-32.
// Where both are at least 2^-12 that is at most 2^-20 of ln u, and rounding adds 2^-21 of it; the root halves both. The
// sine and the products add 2^-21.5. In all that is below 2^-19.5; 2^-18 is assumed, and the errors of fp64 are far
// below the difference. The angle is known to 2^-32 of a turn, which moves the sine by less than 2^-29, whatever its
// size; 2^-28 is assumed.
PLANWRIGHT_EVERY_WIDTH void RoundNormals(const Words& words, float scale, Rounded& rounded) {
  uint32_t any = 0;
  for (int i = 0; i < kBlock; ++i) {
    const uint32_t a = words.radius[i];
    // u = 2^exponent * mantissa, the mantissa from 1/sqrt(2) to sqrt(2).
    const auto bits = std::bit_cast<int32_t>(static_cast<float>(static_cast<int32_t>(a >> 1)) * 0x1p-31f);
    const int32_t exponent = (bits - 0x3f3504f3) >> 23;
    const float mantissa = std::bit_cast<float>(bits - exponent * (1 << 23));
    // u - 1, where u is near 1, from the bits: the float has lost the small difference.
    const float below_one = static_cast<float>(static_cast<int32_t>(~a)) * -0x1p-32f;
    const float f = exponent == 0 ? below_one : mantissa - 1;
    const float logarithm = LogarithmOverArgument(f) * f + static_cast<float>(exponent) * 0.693147181f;
    const float radius = std::sqrt(-2 * logarithm) * scale;
    // cos(2 pi t) = sin(2 pi (t + 1/4)). As a signed number that is from -1/2 to 1/2 of a turn; the outer quarters are
    // folded to the inner ones, by sin(pi - x) = sin(x).
    const uint32_t turn = words.angle[i] + (uint32_t{1} << 30);
    const bool outer = (turn ^ (turn << 1)) >> 31 != 0;
    const auto folded = static_cast<int32_t>(outer ? (uint32_t{1} << 31) - turn : turn);
    const float x = static_cast<float>(folded) * 0x1p-32f;
    const float value = radius * (SineOverTurns(x) * x);
    const float error = std::abs(value) * 0x1p-18f + std::abs(radius) * 0x1p-28f;
    const uint32_t low = RoundToBf16(value - error), high = RoundToBf16(value + error);
    const uint32_t near_end = a + (1u << 20) < (1u << 21);  // u or 1 - u is below 2^-12
    const uint32_t unsure = static_cast<uint32_t>(low != high) | near_end;
    rounded.value[i] = static_cast<uint16_t>(high);
    rounded.unsure[i] = static_cast<uint8_t>(unsure);
    any |= unsure;
  }
  rounded.any = any;
}

}  // namespace

void Philox::NormalsBf16(uint64_t first, int64_t count, double scale, uint16_t* out) const {
  const auto exact = [&](int64_t i) {
    return static_cast<uint16_t>(RoundToBf16(static_cast<float>(scale * Normal(first + static_cast<uint64_t>(i)))));
  };
  // Beyond these scales fp32 would lose bits to its smallest or largest numbers.
  if (!(std::abs(scale) > 1e-20 && std::abs(scale) < 1e20)) {
    for (int64_t i = 0; i < count; ++i) out[i] = exact(i);
    return;
  }
  Words words;
  Rounded rounded;
  for (int64_t done = 0; done < count; done += kBlock) {
    const int64_t wanted = std::min<int64_t>(kBlock, count - done);
    DrawWords(PhiloxCounter(name_hash_, first + static_cast<uint64_t>(done)), PhiloxKey(seed_), words);
    RoundNormals(words, static_cast<float>(scale), rounded);
    std::copy_n(rounded.value, wanted, out + done);
    for (int64_t i = 0; rounded.any != 0 && i < wanted; ++i) {
      if (rounded.unsure[i]) out[done + i] = exact(done + i);
    }
  }
}

}  // namespace planwright
