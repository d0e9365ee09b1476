#include "executor/random/philox.h"

#include <cmath>
#include <numbers>

namespace planwright::executor {
namespace {

uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// FNV-1a, 64 bits. Part of the definition of every draw: another hash would change all initial weights.
uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char character : name) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001b3u;
  return hash;
}

// The top 53 of the 64 bits of two words: as many as a double holds exactly.
uint64_t Bits53(uint32_t low, uint32_t high) { return (uint64_t{high} << 32 | low) >> 11; }

}  // namespace

PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53u} * counter[0], second = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {High(second) ^ counter[1] ^ key[0], Low(second), High(first) ^ counter[3] ^ key[1], Low(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

Philox::Philox(uint64_t seed, std::string_view name) : key_{Low(seed), High(seed)}, name_hash_(HashName(name)) {}

PhiloxCounter Philox::Draw(uint64_t index) const {
  return Philox4x32({Low(index), High(index), Low(name_hash_), High(name_hash_)}, key_);
}

double Philox::Uniform(uint64_t index) const {
  const PhiloxCounter words = Draw(index);
  return static_cast<double>(Bits53(words[0], words[1])) * 0x1p-53;
}

double Philox::Normal(uint64_t index) const {
  const PhiloxCounter words = Draw(index);
  // In (0, 1], not [0, 1): the logarithm of 0 is not finite.
  const double radius = static_cast<double>(Bits53(words[0], words[1]) + 1) * 0x1p-53;
  const double angle = static_cast<double>(Bits53(words[2], words[3])) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

}  // namespace planwright::executor
