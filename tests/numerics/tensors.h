// Whole tensors of a probe file as doubles, and the distance between two of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planwright::testing {

struct WholeTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;  // integers too
};

using Tensors = std::map<std::string, WholeTensor>;

// Reads a safetensors file. If it cannot, the test fails with the path.
Tensors ReadTensors(const std::string& path);

// |a - b| / |b| in the Euclidean norm; |a| if b is all zero. Infinite if shapes differ or a value is not finite.
double Distance(const WholeTensor& a, const WholeTensor& b);

}  // namespace planwright::testing
