// Which source a sample of a mixture is from (docs/training/data.md#mixture). Of the first n samples source i has
// p_i n, less than one off, for every n: Tijdeman's chairman assignment (R. Tijdeman, "The chairman assignment
// problem", 1980), in exact integers.
//
// k sources with weights w_i, T their sum, p_i = w_i / T, c = 1 / (2 k - 2). Sample number x of source i (from 0) may
// come as sample n (from 1) if p_i n >= x + c; of those that may, the one with the least (x + 1 - c) / p_i comes; of
// equal ones that of the earlier source. Then |count_i(n) - p_i n| <= 1 - c for every n, so that T samples have w_i of
// source i: the assignment repeats itself.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright {

// Several threads may ask at once. At most 6 MB.
class Mixture {
 public:
  // 1 to 65,535 weights, each at least 1; their sum is at most kLongestPeriod (source_rules.h).
  explicit Mixture(const std::vector<int64_t>& weights);

  struct Turn {
    int64_t source = 0;  // from 0, in the order of the weights
    int64_t number = 0;  // how many samples of this source come before: the source's own number of this sample
  };
  // Of sample `sample`, from 0. Takes as long for every sample.
  Turn At(int64_t sample) const;
  // How many of the first so many samples are of each source.
  std::vector<int64_t> CountsOf(int64_t samples) const;

 private:
  void Assign();

  const std::vector<int64_t> weights_;
  const int64_t period_;           // the sum of the weights
  const int64_t block_;            // samples between two rows of counts_
  std::vector<uint16_t> sources_;  // [period]
  std::vector<uint32_t> counts_;   // [blocks][sources]: samples of a source before the block
};

}  // namespace planwright
