// The record of an evaluation (docs/training/evaluation.md): a line of RUN/metrics.jsonl between the lines of steps,
// and of lives/N/dropped.jsonl.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/line_file.h"

namespace planwright {

// The mean of the cross entropy of some tokens.
struct MeanLoss {
  std::optional<double> loss;  // nullopt: there is no token to learn, or, where there are, it is not finite
  int64_t tokens = 0;          // that are learnt
  bool operator==(const MeanLoss&) const = default;
};

struct EvaluatedSet {
  std::string name;
  MeanLoss all;
  std::vector<std::pair<std::string, MeanLoss>> sources;  // by name
  std::string samples_digest = {};                        // SamplesDigest (plan_json.h); empty: of older programs
  bool operator==(const EvaluatedSet&) const = default;
};

struct EvaluationRecord {
  int64_t step = 0;  // steps that are done; 0: before the first
  int64_t consumed_samples = 0;
  double seconds = 0;  // of the evaluation
  // Seconds of it at most in which no rank looked whether it is asked to stop; 0: nobody looks, or it is not known.
  double unheard = 0;
  std::vector<EvaluatedSet> sets;
  std::string run_id = {};  // as that of a step (step_record.h)
  int life = 0;             // the same
  bool operator==(const EvaluationRecord&) const = default;
};

// {"step": 10, "consumed_samples": 80, "evaluation": {"held_out": {"loss": 3.1, "tokens": 512, "sources": {"icons":
// {"loss": 3.1, "tokens": 512}}, "samples_digest": "5f..."}}, "evaluation_seconds": 0.5}, without a line break. Numbers
// as in StepJson.
std::string EvaluationJson(const EvaluationRecord& record);

// Reads what EvaluationJson wrote. Sets and sources come in the order of the alphabet. nullopt if it is no JSON object
// with step and consumed_samples, both whole numbers from 0, and an object `evaluation`.
std::optional<EvaluationRecord> ReadEvaluationRecord(std::string_view line);

// The newest evaluation of a file, as far as its last 16 MiB have one. Unavailable if the file cannot be read.
absl::StatusOr<std::optional<EvaluationRecord>> NewestEvaluation(LineFile& file);

// The loss in this format ("%.6g"); "-": no token is learnt; "nan": it is not finite.
std::string LossText(const MeanLoss& mean, const absl::FormatSpec<double>& format);

// "evaluation of step 10/30  held_out 3.101200 (icons 2.9, text 3.3)  0.512 s": for people. Sources are named where a
// set has several. `steps`: of the run; 0: it evaluates given weights and trains nothing, so no step is named.
std::string EvaluationLine(const EvaluationRecord& record, int64_t steps);

}  // namespace planwright
