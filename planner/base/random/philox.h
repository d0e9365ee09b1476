// Counter-based random numbers: a draw is a pure function of (seed, name, index). So no layout, no recompute and no
// resumed run can change it (docs/training/layout_independence.md#draws).
#pragma once

#include <cstdint>
#include <string_view>

namespace planwright {

// A sequence of draws, keyed by a seed and a name (of a parameter, "position_crop", ...). Draw i uses block i of
// Philox4x32 with 10 rounds alone. The counter is i in its lower half and the hash of the name in its upper half; the
// key is the seed. So names do not share blocks, and draws may be taken in any order and from any thread.
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
  uint64_t seed_, name_hash_;
};

}  // namespace planwright
