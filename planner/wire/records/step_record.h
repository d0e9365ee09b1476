// The record of a step (docs/training/step.md#metrics): a line of RUN/metrics.jsonl, and of lives/N/dropped.jsonl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/base/files/line_file.h"

namespace planwright {

// How fast a step was (docs/training/step.md#pace). Per second, and per rank: all ranks of the run count, also those
// that have no text.
struct StepSpeed {
  double tokens = 0;          // of the language model, padding too
  double teraflops = 0;       // model FLOPs / 1e12
  std::optional<double> mfu;  // FLOPs / the device's dense peak; nullopt: ranks are on CPUs, or the peak is unknown
  double seconds_left = 0;    // until the budget's last step is done; no part of it is per rank
  // For how long the data instructions of rank 0 waited for samples; nullopt: not known, as in older files.
  std::optional<double> data_wait = std::nullopt;
  bool operator==(const StepSpeed&) const = default;
};

// Memory of a rank's GPU, in bytes. Peaks are since the start of the process.
struct DeviceMemory {
  int64_t tensors_peak = 0;   // the most that tensors held at one time
  int64_t reserved_peak = 0;  // the most that the allocator had taken from the driver
  int64_t used = 0;           // of the whole device: tensors, context, libraries, and other processes
  bool operator==(const DeviceMemory&) const = default;
};

struct StepRecord {
  int64_t step = 0;  // from 1
  int64_t consumed_samples = 0;
  std::optional<double> loss;  // nullopt: no position of the global batch counts in the loss
  double grad_norm = 0;
  std::vector<std::pair<std::string, double>> module_grad_norms;
  double learning_rate = 0;
  double step_seconds = 0;
  StepSpeed speed;
  bool skipped = false;
  // fingerprint of all expert choices (docs/model/mixture_of_experts.md#routing-fingerprint)
  uint64_t routing = 0;
  std::optional<double> aux_loss;  // nullopt: no layer that is trained has experts
  // By bridge ("radio_encoder->language"): the mean square of the rows that crossed it forward; nullopt: there were
  // none.
  std::vector<std::pair<std::string, std::optional<double>>> bridge_mean_squares;
  // The loss by source, where data comes from several (docs/training/evaluation.md#training-loss-by-source); nullopt:
  // no position of the source counts in the loss of this step.
  std::vector<std::pair<std::string, std::optional<double>>> source_losses;
  std::optional<DeviceMemory> memory;  // of rank 0's GPU, when the step had been launched; nullopt: it is a CPU rank
  std::string run_id;                  // of the run that did the step; empty: of a release before records had it
  int life = 0;                        // of that run, that did the step; 0: of a release before records had it
  bool operator==(const StepRecord&) const = default;
};

std::string StepsPath(const std::string& run_dir);

// {"step": 1, ...}, without a line break. Numbers have 17 digits, so that reading gives the same double. JSON has no
// word for numbers that are not finite: they are null.
std::string StepJson(const StepRecord& record);

// Reads what StepJson wrote. Numbers that are null or missing are NaN, or nullopt where a record may have none; other
// fields that are missing or of another type count as not given. Names come in the order of the alphabet. nullopt if
// it is no JSON object with a step and consumed_samples, both whole numbers from 1, or if it is an evaluation
// (evaluation_record.h).
std::optional<StepRecord> ReadStepRecord(std::string_view line);

// Where a line belongs that is the record of a step or of an evaluation; nullopt: it is neither.
struct RecordPlace {
  int64_t samples = 0;  // consumed_samples
  std::string run_id;   // as StepRecord has it
  int life = 0;         // the same
};
std::optional<RecordPlace> PlaceOfRecord(std::string_view line);

// Where the records of steps and evaluations up to `samples` consumed samples end. It reads from the end of the file,
// as records are written in the order of their samples: a line break is missing there if `whole` is false. Unavailable
// if the file cannot be read.
struct KeptSteps {
  int64_t bytes = 0;
  bool whole = true;
  RecordPlace last;  // of the last record that stays; 0 samples: none does
};
absl::StatusOr<KeptSteps> FindKeptSteps(LineFile& file, int64_t samples);

}  // namespace planwright
