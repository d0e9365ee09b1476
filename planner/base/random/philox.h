// Counter-based random numbers: a draw is a pure function of (seed, name, index). So no layout, no recompute and no
// resumed run can change it (docs/training/layout_independence.md#draws).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace planwright {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Philox4x32 with 10 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
// Inline, and without branches: the compiler works on several counters at once.
inline PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * counter[0], second = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(second),
               static_cast<uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

// A sequence of draws, keyed by a seed and a name (of a parameter, "position_crop", ...). Draw i uses counter block i
// alone. The counter is i in its lower half and the hash of the name in its upper half; the key is the seed. So names
// do not share blocks, and draws may be taken in any order and from any thread.
class Philox {
 public:
  Philox(uint64_t seed, std::string_view name);

  // Uniform in [0, 1), a multiple of 2^-53.
  double Uniform(uint64_t index) const;
  // Standard normal: Box-Muller from the two 53 bit uniforms of one block.
  double Normal(uint64_t index) const;
  // Writes scale * Normal(i), rounded to bf16, for `count` draws from i = first on. Rounded as LibTorch does: from
  // double to float, then to bf16, each to nearest, ties to even. Ten times as fast as one call of Normal for each
  // draw.
  void NormalsBf16(uint64_t first, int64_t count, double scale, uint16_t* out) const;

 private:
  PhiloxCounter CounterOf(uint64_t index) const;
  PhiloxCounter Draw(uint64_t index) const;

  PhiloxKey key_;
  uint64_t name_hash_;
};

}  // namespace planwright
