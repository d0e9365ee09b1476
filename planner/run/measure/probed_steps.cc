#include "planner/run/measure/probed_steps.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/base/files/line_file.h"
#include "planner/base/text/status_macros.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/rates.h"
#include "planner/run/measure/measurements.h"
#include "planner/wire/records/step_record.h"

namespace planwright {

absl::StatusOr<double> MedianStep(const std::string& run_dir, const StepRange& steps) {
  ABSL_ASSIGN_OR_RETURN(LineFile file, LineFile::Open(StepsPath(run_dir)));
  std::vector<double> took;
  for (int64_t at = 0;;) {
    ABSL_ASSIGN_OR_RETURN(const std::optional<LineFile::Line> line, file.At(at));
    if (!line) break;
    at = line->end;
    const std::optional<StepRecord> record = ReadStepRecord(line->text);  // of an evaluation: none
    if (record && record->step >= steps.first && record->step <= steps.last && record->step_seconds > 0)
      took.push_back(record->step_seconds);
  }
  if (static_cast<int64_t>(took.size()) != steps.count()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), " tells the time of ", took.size(), " of the ",
                                                   steps.count(), " steps from ", steps.first, " to ", steps.last));
  }
  return TimeOf(std::move(took)).median;
}

double PredictedWith(Plan plan, const DeviceProfile& profile) {
  plan.cluster.gpu = profile.gpu;  // ranks of a recipe for GPUs may run on CPUs
  plan.cluster.profile = profile;
  KeepAskedPoints(plan, plan.cluster.profile);
  const StepTime step = TimeStep(plan);
  return step.seconds ? step.length : 0;
}

}  // namespace planwright
