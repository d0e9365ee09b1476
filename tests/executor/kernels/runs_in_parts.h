// Runs of rows in several parts, as experts get them from several ranks, for the kernels that take them so.
#pragma once

#include <cstdint>
#include <vector>

namespace planwright::executor {

struct RunsInParts {
  std::vector<int64_t> lengths;  // [parts, runs]
  int64_t parts = 0;
  int64_t behind = 37;  // rows of NaN after the last run
};

// Parts that end within a group of 16 rows, at its end, within and at the ends of the 64 rows of a stage or of half a
// tile, and of a whole tile; empty ones, and runs of one part only; and one run alone, with nothing behind it.
inline std::vector<RunsInParts> FewRunsInParts() {
  return {{{70, 0, 130, 16, 1, 200}, 2},
          {{0, 5, 64, 0, 300, 3, 128, 0, 48, 61, 0, 7}, 3},
          {{0, 0, 0, 0}, 2},
          {{9, 17, 33}, 3, /*behind=*/0}};
}

// The lengths are below `most`, in no order.
inline RunsInParts ManyRunsInParts(int64_t parts, int64_t runs, int64_t most) {
  RunsInParts made{.lengths = std::vector<int64_t>(static_cast<size_t>(parts * runs)), .parts = parts};
  for (size_t i = 0; i < made.lengths.size(); ++i) made.lengths[i] = static_cast<int64_t>(i) * 37 % most;
  return made;
}

}  // namespace planwright::executor
