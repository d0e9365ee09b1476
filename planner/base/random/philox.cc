#include "planner/base/random/philox.h"

#include <cmath>
#include <numbers>

#include "planner/base/random/philox_block.h"

namespace planwright {
namespace {

// FNV-1a, 64 bits. Part of the definition of every draw: another hash would change all initial weights.
uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3u;
  return hash;
}

// The top 53 of the 64 bits of two words: as many as a double holds exactly.
uint64_t Bits53(uint32_t low, uint32_t high) { return (uint64_t{high} << 32 | low) >> 11; }

}  // namespace

Philox::Philox(uint64_t seed, std::string_view name) : seed_(seed), name_hash_(HashName(name)) {}

double Philox::Uniform(uint64_t index) const {
  const auto words = philox4x32(PhiloxCounter(name_hash_, index), PhiloxKey(seed_));
  return static_cast<double>(Bits53(words[0], words[1])) * 0x1p-53;
}

double Philox::Normal(uint64_t index) const {
  const auto words = philox4x32(PhiloxCounter(name_hash_, index), PhiloxKey(seed_));
  // In (0, 1], not [0, 1): the logarithm of 0 is not finite.
  const double radius = static_cast<double>(Bits53(words[0], words[1]) + 1) * 0x1p-53;
  const double angle = static_cast<double>(Bits53(words[2], words[3])) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

}  // namespace planwright
