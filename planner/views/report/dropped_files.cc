#include "planner/views/report/dropped_files.h"

#include <algorithm>
#include <optional>

#include "planner/state/checkpoint/run_lives.h"

namespace planwright {
namespace {

std::string PathOf(const std::string& run_dir, int life) { return LifeFolder(run_dir, life) + "/" + kDroppedStepsFile; }

bool IsIn(const std::vector<SampleRange>& ranges, int64_t samples) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const SampleRange& range) { return range.first <= samples && samples <= range.second; });
}

}  // namespace

// Whether the file has this record. Two lives that did a step took different times for it.
bool DroppedFiles::Has(const std::string& path, const StepPoint& wanted) const {
  bool found = false;
  (void)ReadSteps(path, run_id_, [&](const StepPoint& point) {
    found = point.samples == wanted.samples && point.seconds == wanted.seconds;
    return point.samples < wanted.samples;
  });
  return found;
}

absl::Status DroppedFiles::Read(int life, std::vector<SampleRange>& before, const StepVisitor& visit,
                                const EvaluationVisitor& visit_evaluation) {
  const std::string path = PathOf(run_dir_, life);
  std::optional<StepPoint> first;
  const absl::Status status = ReadSteps(path, run_id_, [&](const StepPoint& point) {
                                first = point;
                                return false;
                              }).status();
  if (absl::IsNotFound(status)) return absl::OkStatus();
  if (!status.ok() || !first) return status;
  if (!chain_.empty()) {
    const Earlier& last = chain_.back();
    const bool same = first->samples > last.range.first ? Has(last.path, *first) : Has(path, last.first);
    if (!same) chain_.clear();
  }
  for (const Earlier& earlier : chain_) before.push_back(earlier.range);
  Earlier own{path, *first, {first->samples, first->samples}};
  const auto add = [&](const StepPoint& point) {
    own.range.second = point.samples;
    return IsIn(before, point.samples) || visit(point);
  };
  const auto add_evaluation = [&](const EvaluationRecord& evaluation) {
    if (visit_evaluation && !IsIn(before, evaluation.consumed_samples)) visit_evaluation(evaluation);
  };
  const absl::Status read = ReadSteps(path, run_id_, add, 0, add_evaluation).status();
  chain_.push_back(std::move(own));
  return read;
}

absl::Status ReadDroppedAgain(const std::string& run_dir, const std::string& run_id, int life,
                              const std::vector<SampleRange>& before, const StepVisitor& visit) {
  return ReadSteps(PathOf(run_dir, life), run_id,
                   [&](const StepPoint& point) { return IsIn(before, point.samples) || visit(point); })
      .status();
}

}  // namespace planwright
