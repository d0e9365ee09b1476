// Run-length form of lists of integers, with steps: a run is a first row, a count, and what is added from row to row. A
// plan's file writes ranks and transfers so: a bridge between thousands of lanes is a few runs. A row is N integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planwright {

template <size_t N>
using NumberRow = std::array<int64_t, N>;

// The rows first, first + step, first + 2 step, ..., `count` of them.
template <size_t N>
struct NumberRun {
  NumberRow<N> first{};
  int64_t count = 1;
  NumberRow<N> step{};
};

// Fewer rows than this are written as rows: as a run they would be no shorter.
inline constexpr size_t kShortestRun = 4;

// a + b and a - b with wrap-around instead of undefined overflow: a damaged file may have any numbers.
inline int64_t WrappedSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t WrappedDifference(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}

// Cuts `rows` into runs, in order: at each row the longest run that begins there. A run has one row, or at least
// kShortestRun. (Greedy, so the result is not always the shortest; it is always the same, as digests need.)
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
