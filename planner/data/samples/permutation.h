// A permutation of the numbers below n that is looked up, not stored (docs/training/data.md#permutations): a Feistel
// network over Philox, on a rectangle of a x b >= n numbers (J. Black and P. Rogaway, "Ciphers with arbitrary finite
// domains", 2002). a is the least whole number with a a >= n, and b the least with a b >= n. Number x has the row
// l = x / b, rounded down, and the column r = x mod b. U has the seed and the name of the permutation.
//
//   for round = 0, 1, ..., 7:
//     even:  l = (l + floor(U(round 2^32 + r) a)) mod a
//     odd:   r = (r + floor(U(round 2^32 + l) b)) mod b
//   x = l b + r;  as long as x >= n: all rounds again, from this x on
//
// Each round can be undone, so the network permutes the rectangle; and walking on from each x >= n permutes [0, n).
#pragma once

#include <cstdint>
#include <string_view>

#include "planner/base/random/philox.h"

namespace planwright {

// Several threads may ask at once.
class KeyedPermutation {
 public:
  // Of [0, size), size from 1 to 2^40.
  KeyedPermutation(uint64_t seed, std::string_view name, int64_t size);

  // What stands at `position`. One pass through the network, seldom more: less than one number in b is beyond n.
  int64_t At(int64_t position) const;

 private:
  const Philox draws_;
  const int64_t size_;
  int64_t rows_ = 1, columns_ = 1;
};

}  // namespace planwright
