#include "executor/rank/records.h"

#include <absl/strings/str_cat.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include "executor/checkpoint/resume_point.h"
#include "executor/log/log.h"
#include "executor/rank/torch_warnings.h"

namespace planwright::executor {
namespace {

void LogStart(const Assignment& assignment) {
  const Plan& plan = assignment.plan;
  const Environment& environment = assignment.environment;
  LogInfo(absl::StrCat("planwright ", kToolVersion, ", LibTorch ", TORCH_VERSION, ": rank ", environment.rank, " of ",
                       environment.world_size, " on ", environment.host, ", process ", getpid(), ", life ",
                       assignment.options.life));
  LogInfo(absl::StrCat("plan ", plan.name, ", digest ", plan.digest, ", role ", assignment.role().name));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> OpenRecords(const Assignment& assignment) {
  const RankOptions& options = assignment.options;
  const absl::Status opened = OpenLog(options.run_dir, assignment.rank(), [&] {
    const bool has_lives = assignment.plan.checkpoint.every_steps > 0;
    return has_lives ? CheckNoNewerLife(options.run_dir, options.life) : absl::OkStatus();
  });
  if (!opened.ok()) return opened;
  LogTorchWarnings();
  LogStart(assignment);
  return Recorder::Open(options.run_dir, assignment.rank(), assignment.environment.host);
}

}  // namespace planwright::executor
