// Whole tensors of a probe file as doubles, and how far two of them are apart.
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

// Reads a safetensors file; fails the test with the path when it cannot.
Tensors ReadTensors(const std::string& path);

// |a - b| / |b| in the Euclidean norm; |a| where b is all zero. Infinite when shapes differ or a value is not finite.
double Distance(const WholeTensor& a, const WholeTensor& b);

}  // namespace planwright::testing
