// A space of layouts that train one curve and were all run on the same cards, so that a search may choose any of them.
#pragma once

#include <string>
#include <vector>

namespace planwright::testing {

struct MeasuredRun {
  const char* name;
  std::vector<std::string> overrides;
  double measured = 0;   // milliseconds of a step
  double predicted = 0;  // then, by a profile that is not kept; 0: it can be predicted again
};

struct MeasuredSpace {
  const char* name;
  const char* recipe;
  const char* profile;  // of recipes/profiles; null: those of the runs are not kept
  std::vector<std::string> overrides;
  std::vector<MeasuredRun> runs;
  bool older = false;  // run before steps lost the passes of tests/support/older_passes.h
};

using Words = std::vector<std::string>;

template <typename T>
std::vector<T> operator+(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace planwright::testing
