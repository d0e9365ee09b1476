#include "planner/run/launch/until_saved.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "planner/base/files/line_file.h"
#include "planner/predict/estimate/until_stop.h"
#include "planner/wire/records/evaluation_record.h"
#include "planner/wire/records/step_record.h"

namespace planwright {

MeasuredStretches ReadStretches(const std::string& run_dir) {
  constexpr int64_t kMostBytes = int64_t{1} << 20;  // a thousand steps or more
  MeasuredStretches longest;
  absl::StatusOr<LineFile> file = LineFile::Open(StepsPath(run_dir));
  if (!file.ok()) return longest;
  const auto take = [](double& most, double seconds) {
    if (std::isfinite(seconds)) most = std::max(most, seconds);
  };
  for (int64_t end = file->bytes(), last = std::max<int64_t>(end - kMostBytes, 0); end > last;) {
    const absl::StatusOr<std::optional<LineFile::Line>> line = file->Before(end, end - last);
    if (!line.ok() || !*line) break;
    if (const std::optional<StepRecord> step = ReadStepRecord((*line)->text)) {
      take(longest.step, step->step_seconds);
    } else if (const std::optional<EvaluationRecord> evaluation = ReadEvaluationRecord((*line)->text)) {
      take(longest.evaluation, evaluation->unheard);
    }
    end = (*line)->begin;
  }
  return longest;
}

double SecondsUntilStop(const Plan& plan, const RunOptions& options) {
  const MeasuredStretches measured = ReadStretches(options.run_dir);
  const double step = measured.step > 0 ? measured.step : PredictedStep(plan);
  return std::max(step * static_cast<double>(StepsUntilStop(OnGpus(plan, options))), measured.evaluation);
}

}  // namespace planwright
