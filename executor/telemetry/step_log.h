// The record of a step: one JSON object in RUN/metrics.jsonl and one line for people.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planwright::executor {

struct StepRecord {
  int64_t step = 0;  // from 1
  int64_t consumed_samples = 0;
  std::optional<double> loss;  // none: the batch had no loss token
  double grad_norm = 0;
  std::vector<std::pair<std::string, double>> module_grad_norms;
  double learning_rate = 0;
  double step_seconds = 0;
  bool skipped = false;
  uint64_t routing = 0;            // fingerprint of all expert choices
  std::optional<double> aux_loss;  // none: no layer has experts
};

// {"step": 1, ...}, numbers with all 17 digits; what is not finite is null, as JSON has no word for it.
std::string StepJson(const StepRecord& record);
// "step 12/20  samples 96  loss 4.123400  grad norm 0.512  lr 1.200e-03  0.310 s"
std::string StepLine(const StepRecord& record, int64_t steps);

class StepLog {
 public:
  // Appends to RUN/metrics.jsonl.
  static absl::Status Open(const std::string& run_dir, std::unique_ptr<StepLog>& log);
  ~StepLog();
  // ResourceExhausted if it cannot be written. The line is in the file when it returns.
  absl::Status Write(const StepRecord& record);

 private:
  std::FILE* file_ = nullptr;
};

}  // namespace planwright::executor
