// First fit: each item goes into the first sample with room for it, or opens one.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright {

// Finds a place in log2(items) steps, however many samples are open: a tree of the largest rooms.
class FirstFit {
 public:
  // `room`: tokens of an empty sample, at least 1.
  explicit FirstFit(int64_t room) : room_(room) {}

  // Empties all samples, for at most `items` items.
  void Begin(int64_t items);
  // The number of the sample, from 0, that takes an item of 1 to `room` tokens. A new one is the next number.
  int64_t Place(int64_t tokens);

 private:
  const int64_t room_;
  int64_t leaves_ = 1;          // a power of two: samples that may be opened
  std::vector<int64_t> rooms_;  // [2 leaves]: of leaf i at leaves + i; of node i the larger one of 2 i and 2 i + 1
};

}  // namespace planwright
