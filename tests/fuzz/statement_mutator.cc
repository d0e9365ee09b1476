// How libFuzzer changes a statement: mostly its lines and words, so that many texts have no problem in their lines and
// are checked as a whole.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "tests/plan/statement/any_statement.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 random(seed);
  if (random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string damaged = planwright::testing::DamagedText(text, random);
  const size_t kept = std::min(damaged.size(), max_size);
  std::memcpy(data, damaged.data(), kept);
  return kept;
}
