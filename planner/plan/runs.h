// Lists as runs of rows in equal steps, which is how a plan's file holds what grows with ranks: a bridge between
// thousands of lanes is a few runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planwright {

template <size_t N>
using NumberRow = std::array<int64_t, N>;

// first, first + step, ... (count of them)
template <size_t N>
struct NumberRun {
  NumberRow<N> first{};
  int64_t count = 1;
  NumberRow<N> step{};
};

// Shorter runs are as long in a file as their rows.
inline constexpr size_t kShortestRun = 4;

// a + b and a - b that may wrap: a file may claim any numbers.
inline int64_t WrappedSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t WrappedDifference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// The longest run from each place on, in order. Runs have one row, or at least kShortestRun.
template <size_t N>
std::vector<NumberRun<N>> RunsOf(const std::vector<NumberRow<N>>& rows) {
  const auto step_to = [&](size_t i) {
    NumberRow<N> step;
    for (size_t k = 0; k < N; ++k) step[k] = WrappedDifference(rows[i][k], rows[i - 1][k]);
    return step;
  };
  std::vector<NumberRun<N>> runs;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i + 1;
    if (end < rows.size()) {
      const NumberRow<N> step = step_to(end);
      while (end < rows.size() && step_to(end) == step) ++end;
      if (end - i >= kShortestRun) {
        runs.push_back({rows[i], static_cast<int64_t>(end - i), step});
        i = end;
        continue;
      }
    }
    runs.push_back({rows[i]});
    ++i;
  }
  return runs;
}

// Appends the rows of a run.
template <size_t N>
void AppendRows(const NumberRun<N>& run, std::vector<NumberRow<N>>& rows) {
  NumberRow<N> row = run.first;
  for (int64_t i = 0; i < run.count; ++i) {
    rows.push_back(row);
    for (size_t k = 0; k < N; ++k) row[k] = WrappedSum(row[k], run.step[k]);
  }
}

}  // namespace planwright
