#include "executor/rank/step_files.h"

#include <optional>
#include <string>

#include "planner/state/checkpoint/run_id.h"

namespace planwright::executor {

absl::StatusOr<StepFiles> OpenStepFiles(const Assignment& assignment) {
  const RankOptions& options = assignment.options;
  StepFiles files;
  if (assignment.rank() == 0) {
    if (absl::Status opened = StepLog::Open(options.run_dir, files.log); !opened.ok()) return opened;
    const absl::StatusOr<std::optional<std::string>> run_id = ReadRunId(options.run_dir);
    if (absl::IsUnavailable(run_id.status())) return absl::ResourceExhaustedError(run_id.status().message());
    if (!run_id.ok()) return run_id.status();
    files.log->SetRun(run_id->value_or(""));
    files.events =
        std::make_unique<EventFile>(assignment.plan, options.run_dir, options.life, assignment.environment.host);
  }
  if (!options.probe.empty()) files.probe = std::make_unique<ProbeWriter>(options.probe, assignment.rank());
  if (options.profile) files.profile = std::make_unique<StepProfile>(options.run_dir, *options.profile);
  return files;
}

absl::Status StepFiles::Close() {
  absl::Status status;
  if (log != nullptr) status.Update(log->Close());
  if (events != nullptr) status.Update(events->Close());
  return status;
}

}  // namespace planwright::executor
