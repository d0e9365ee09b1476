// Reads the values of sources of weights and says what is wrong with them (`plan weights --read`).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/weights/fit.h"

namespace planwright {

struct WeightValues {
  std::vector<std::string> problems;  // infinity or NaN, scales that are not 1, bytes that are gone or damaged
  std::vector<std::string> warnings;  // rows of embeddings that are zero
  int64_t bytes = 0;                  // that were read
};

// Reads every tensor that a part takes, on up to `threads` threads. `progress(done, all)`: bytes, from any thread, one
// call at a time.
WeightValues ReadAllValues(const Plan& plan, WeightsFit& fit, int threads,
                           const std::function<void(int64_t, int64_t)>& progress = {});

// What is wrong with a tensor of `files` that must be 1 in every element (KnownExtra::must_be_ones): a line with file,
// tensor and element. Empty: it is 1.
std::string ScaleThatIsNotOne(WeightFiles& files, const std::string& name);

// Tensors that are passed through and must be 1 in every element (KnownExtra::must_be_ones), and are not: a line each.
// They are a few KiB.
std::vector<std::string> ScalesThatAreNotOne(const WeightsFit& fit);

// "a, b: rows 3, 7 to 9": what a warning says of rows of an embedding that are zero. Empty: there are none.
std::string ZeroRows(const std::string& tensor, const std::vector<int64_t>& rows);

}  // namespace planwright
