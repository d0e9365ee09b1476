// The records of steps that rank 0 wrote (planner/wire/records/step_record.h): RUN/metrics.jsonl, and the file of
// records that a later life dropped. The file may be written right now, and it may be damaged. It may be of any size:
// it is read line by line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/wire/records/evaluation_record.h"

namespace planwright {

// What a report needs of a record. Numbers that were not finite are nullopt.
struct StepPoint {
  int64_t step = 0, samples = 0;  // samples: consumed so far, with those of this step
  std::optional<double> loss, grad_norm, learning_rate;
  double seconds = 0;  // 0: the record does not say
  // Of these, for how long rank 0 waited for samples; nullopt: the record does not say, as in older files.
  std::optional<double> data_wait = std::nullopt;
  bool skipped = false;
  std::vector<std::pair<std::string, std::optional<double>>> source_losses = {};  // where data has several sources
};

// Gets one step after the other, ascending by samples. False: it needs no more.
using StepVisitor = std::function<bool(const StepPoint&)>;
// Gets the evaluations between them, in their order in the file.
using EvaluationVisitor = std::function<void(const EvaluationRecord&)>;

struct StepFile {
  // Lines that are neither a record of a step nor of an evaluation, or come after one of more samples (of a step: of as
  // many), and the number of the first, from 1. A
  // last line without an end is not among them: it may be written right now.
  int64_t unreadable = 0, first_unreadable = 0;
  bool cut_off = false;  // there is such a last line
  // Records of another run, which are passed over, and the first such run. Records that say no run, as those of earlier
  // releases, are taken as they are.
  int64_t of_another = 0, unnamed = 0;
  std::string another;
};

// Reads the last `most` bytes of the file, from the first whole line; 0: all of it. `run_id`: of the run that is
// reported; empty: records of any run are taken. NotFound if there is no such file; Unavailable if it cannot be read.
absl::StatusOr<StepFile> ReadSteps(const std::string& path, const std::string& run_id, const StepVisitor& visit,
                                   int64_t most = 0, const EvaluationVisitor& visit_evaluation = {});

}  // namespace planwright
