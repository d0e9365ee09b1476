// The records that each life of a run dropped when it began, as it did these steps again (lives/N/dropped.jsonl).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "planner/views/report/step_file.h"

namespace planwright {

// From and to so many consumed samples, both ends among them.
using SampleRange = std::pair<int64_t, int64_t>;

// Reads them, life after life. A rank that ended while it dropped records has left them for the life after it, which
// dropped them again: these count once, for the first life that dropped them.
class DroppedFiles {
 public:
  // `run_id`: as ReadSteps.
  DroppedFiles(std::string run_dir, std::string run_id) : run_dir_(std::move(run_dir)), run_id_(std::move(run_id)) {}

  // Gives each record of the next life that counts. `before`: becomes the samples whose records lives before it have
  // dropped. Good if there is no such file; Unavailable if it cannot be read.
  absl::Status Read(int life, std::vector<SampleRange>& before, const StepVisitor& visit,
                    const EvaluationVisitor& visit_evaluation = {});

 private:
  struct Earlier {
    std::string path;
    StepPoint first;
    SampleRange range;
  };

  bool Has(const std::string& path, const StepPoint& wanted) const;

  const std::string run_dir_, run_id_;
  std::vector<Earlier> chain_;  // lives that dropped records of one file, one after the other
};

// Gives the records of a life that count, once more. `before`: as Read made it.
absl::Status ReadDroppedAgain(const std::string& run_dir, const std::string& run_id, int life,
                              const std::vector<SampleRange>& before, const StepVisitor& visit);

}  // namespace planwright
