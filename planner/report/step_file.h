// The records of steps that rank 0 wrote (docs/training/step.md#metrics): RUN/metrics.jsonl, and the file of records
// that a later life dropped. The file may be written right now, and it may be damaged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// What a report needs of a record. Numbers that were not finite are nullopt.
struct StepPoint {
  int64_t step = 0, samples = 0;  // samples: consumed so far, with those of this step
  std::optional<double> loss, grad_norm, learning_rate;
  double seconds = 0;  // 0: the record does not say
  bool skipped = false;
};

struct StepFile {
  std::vector<StepPoint> steps;  // ascending by samples
  // Lines that are no record of a step, or come after one of as many samples, and the number of the first, from 1. A
  // last line without an end is not among them: it may be written right now.
  int64_t unreadable = 0, first_unreadable = 0;
  bool cut_off = false;  // there is such a last line
};

// Reads the last `most` bytes of the file, from the first whole line; 0: all of it. NotFound if there is no such file;
// Unavailable if it cannot be read.
absl::StatusOr<StepFile> ReadSteps(const std::string& path, size_t most = 0);

}  // namespace planwright
