#include "executor/program/stop_rules.h"

#include <absl/strings/str_format.h>

#include <cmath>
#include <string>

#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "executor/program/instruction_text.h"
#include "planner/base/files/exit_status.h"

namespace planwright::executor {

void StopRules::Resume(const ManifestNotes& notes) {
  divergence_.Resume(notes.recent_losses);
  skipped_in_a_row_ = notes.skipped_in_a_row;
}

void StopRules::Note(ManifestNotes& notes) const {
  notes.recent_losses = divergence_.window();
  notes.skipped_in_a_row = skipped_in_a_row_;
}

void StopRules::Take(const StepRecord& record, int64_t stop_requests) {
  if (stop_requests > 0 && !stop_after_) {
    stop_after_ = record.step - 1 + lag_;
    LogInfo(absl::StrFormat("a rank was asked to stop: all stop after step %d", *stop_after_ + 1));
  }
  skipped_in_a_row_ = record.skipped ? skipped_in_a_row_ + 1 : 0;
  if (record.skipped) {
    LogWarning(absl::StrFormat("step %d is skipped: its gradient norm is not finite (%d in a row)", record.step,
                               skipped_in_a_row_));
  }
  CheckBridges(record);
  CheckSkipped(record);
  CheckDivergence(record);
}

void StopRules::CheckBridges(const StepRecord& record) const {
  for (size_t i = 0; i < plan_.bridges.size(); ++i) {
    const double limit = plan_.bridges[i].max_mean_square;
    const auto& [name, square] = record.bridge_mean_squares[i];
    // Not `>`, for a mean that is not a number.
    if (limit == 0 || !square || *square <= limit) continue;
    throw ExitError(kExitNumerics,
                    absl::StrFormat("step %d: the rows of bridge %s have a mean square of %.6g, beyond max_mean_square "
                                    "%.6g\n  recipe: %s",
                                    record.step, name, *square, limit, OriginText(plan_, plan_.bridges[i].origin)));
  }
}

void StopRules::CheckDivergence(const StepRecord& record) {
  const std::optional<double> least = divergence_.Take(record.loss);
  if (!least) return;
  throw ExitError(kExitDiverged,
                  absl::StrFormat("step %d: the loss %.6g is more than divergence.factor %.6g times %.6g, the smallest "
                                  "of the %d steps before",
                                  record.step, *record.loss, plan_.divergence.factor, *least, plan_.divergence.window));
}

// A single bad batch is skipped and training goes on. Many in a row mean that something is wrong with the run.
void StopRules::CheckSkipped(const StepRecord& record) const {
  if (skipped_in_a_row_ < kSkippedStepsAllowed) return;
  std::string modules;
  for (const auto& [module, norm] : record.module_grad_norms) {
    if (!std::isfinite(norm)) modules += " " + module;
  }
  throw ExitError(kExitNumerics, absl::StrFormat("%d steps in a row had a gradient norm that is not finite, in%s",
                                                 skipped_in_a_row_, modules));
}

}  // namespace planwright::executor
