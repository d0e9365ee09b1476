#include "executor/rank/step_files.h"

namespace planwright::executor {

absl::StatusOr<StepFiles> OpenStepFiles(const Assignment& assignment) {
  const RankOptions& options = assignment.options;
  StepFiles files;
  if (assignment.rank() == 0) {
    if (absl::Status opened = StepLog::Open(options.run_dir, files.log); !opened.ok()) return opened;
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
