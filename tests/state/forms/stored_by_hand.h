// Tensors of files made in the plainest way: whole arrays that are cut, joined and transposed element by element. What
// planner/state/forms computes with strides is compared with these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planwright::testing {

// A tensor of elements of `width` bytes each.
struct PlainTensor {
  std::vector<int64_t> shape;
  size_t width = 1;
  std::string bytes;

  std::string At(const std::vector<int64_t>& index) const;
  void Set(const std::vector<int64_t>& index, const std::string& element);
};

PlainTensor EmptyTensor(std::vector<int64_t> shape, size_t width);

// What a file has of parameters by a line `tensor`: `experts[e]` are the parameters of one expert; without experts
// there is one of them. `stack` puts even one matrix into a new dim 0.
PlainTensor StoredByHand(const std::vector<std::vector<PlainTensor>>& experts, int along, int64_t groups, bool swap,
                         bool stack);

}  // namespace planwright::testing
