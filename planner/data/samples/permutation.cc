#include "planner/data/samples/permutation.h"

#include <cmath>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

constexpr int kRounds = 8;
constexpr int64_t kLargest = int64_t{1} << 40;  // sides stay below 2^20, so that a round has draws of its own

}  // namespace

KeyedPermutation::KeyedPermutation(uint64_t seed, std::string_view name, int64_t size)
    : draws_(seed, name), size_(size) {
  Require(size >= 1 && size <= kLargest, "a permutation of too many numbers");
  rows_ = static_cast<int64_t>(std::sqrt(static_cast<double>(size)));
  while (rows_ * rows_ < size) ++rows_;
  while (rows_ > 1 && (rows_ - 1) * (rows_ - 1) >= size) --rows_;
  columns_ = (size + rows_ - 1) / rows_;
}

int64_t KeyedPermutation::At(int64_t position) const {
  do {
    int64_t row = position / columns_, column = position % columns_;
    for (int64_t round = 0; round < kRounds; round += 2) {
      // A product of a draw and a side below 2^53 is never rounded up to the side.
      row += static_cast<int64_t>(draws_.Uniform(round << 32 | column) * static_cast<double>(rows_));
      if (row >= rows_) row -= rows_;
      column += static_cast<int64_t>(draws_.Uniform((round + 1) << 32 | row) * static_cast<double>(columns_));
      if (column >= columns_) column -= columns_;
    }
    position = row * columns_ + column;
  } while (position >= size_);
  return position;
}

}  // namespace planwright
