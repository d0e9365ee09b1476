// Counter-based random numbers: a draw is a pure function of (seed, name, index). So no layout, no recompute and no
// resumed run can change it (docs/training/layout_independence.md#draws).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace planwright::executor {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Philox4x32 with 10 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key);

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

 private:
  PhiloxCounter Draw(uint64_t index) const;

  PhiloxKey key_;
  uint64_t name_hash_;
};

}  // namespace planwright::executor
