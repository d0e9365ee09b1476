// Reads the values of sources of weights and says what is wrong with them (`plan weights --read`).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "planner/state/weights/fit.h"

namespace planwright {

struct WeightValues {
  std::vector<std::string> problems;  // infinity or NaN, numbers too large for the run, scales and normalizations that
                                      // are others, copies that are none, bytes that are gone or damaged
  std::vector<std::string> warnings;  // rows of embeddings that are zero
  int64_t bytes = 0;                  // that were read
};

// Reads every tensor that a part takes, on up to `threads` threads. `progress(done, all)`: bytes, from any thread, one
// call at a time.
WeightValues ReadAllValues(const Plan& plan, WeightsFit& fit, int threads,
                           const std::function<void(int64_t, int64_t)>& progress = {});

// What is wrong with the numbers of a tensor of `files` that is passed through (KnownExtra::numbers): a line with file,
// tensor and element. Empty: they are as the model takes them for granted.
std::string WrongExtra(WeightFiles& files, const KnownExtra& extra, const std::string& name);

// The same of a tensor that is a copy of another one: they must have the same bytes. Reads both, which may be large.
std::string WrongCopy(const WeightFiles& files, const KnownExtra& extra, const std::string& name);

// Tensors that are passed through, whose numbers the model here takes for granted (KnownExtra::numbers, copy_of), and
// that have others: a line each. Those with numbers are a few KiB; a copy is read as a whole, and its original too.
// `fit` fits.
std::vector<std::string> WrongExtras(WeightsFit& fit);

// "a, b: rows 3, 7 to 9": what a warning says of rows of an embedding that are zero. Empty: there are none.
std::string ZeroRows(const std::string& tensor, const std::vector<int64_t>& rows);

}  // namespace planwright
