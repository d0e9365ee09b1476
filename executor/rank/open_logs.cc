#include "executor/rank/open_logs.h"

#include <absl/strings/str_cat.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "executor/checkpoint/resume_point.h"
#include "executor/log/log.h"
#include "planner/state/checkpoint/run_id.h"
#include "planner/wire/records/rank_variables.h"

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

// What can change the work of a rank is in its log. The first rank of a node leaves it for the outcome, too.
absl::Status KeepVariables(const Assignment& assignment) {
  const std::vector<RankVariable> variables = LibraryVariables(assignment.rank());
  for (const RankVariable& one : variables) LogInfo(absl::StrCat("environment ", one.name, "=", one.value));
  if (assignment.environment.local_rank != 0) return absl::OkStatus();
  return WriteRankVariables(assignment.options.run_dir, assignment.rank(), variables);
}

class LoggingHandler : public c10::WarningHandler {
  void process(const c10::Warning& warning) override {
    const c10::SourceLocation& location = warning.source_location();
    LogWarningFrom(location.file, static_cast<int>(location.line), warning.msg());
    c10::WarningHandler::process(warning);  // prints it to stderr
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> OpenLogs(const Assignment& assignment) {
  const RankOptions& options = assignment.options;
  const absl::Status opened = OpenLog(options.run_dir, assignment.rank(), [&] {
    return assignment.keeps() ? CheckNoNewerLife(options.run_dir, options.life) : absl::OkStatus();
  });
  if (!opened.ok()) return opened;
  LogTorchWarnings();
  LogStart(assignment);
  if (absl::Status kept = KeepVariables(assignment); !kept.ok()) return kept;
  return Recorder::Open(options.run_dir, assignment.rank(), assignment.environment.host);
}

void LogTorchWarnings() {
  static LoggingHandler handler;
  c10::WarningUtils::set_warning_handler(&handler);
}

absl::StatusOr<StepFiles> OpenStepFiles(const Assignment& assignment) {
  const RankOptions& options = assignment.options;
  StepFiles files;
  if (assignment.rank() == 0) {
    if (absl::Status opened = StepLog::Open(options.run_dir, files.log); !opened.ok()) return opened;
    const absl::StatusOr<std::optional<std::string>> run_id = ReadRunId(options.run_dir);
    if (absl::IsUnavailable(run_id.status())) return absl::ResourceExhaustedError(run_id.status().message());
    if (!run_id.ok()) return run_id.status();
    files.log->SetRun(run_id->value_or(""), options.life);
    files.events =
        std::make_unique<EventFile>(assignment.plan, options.run_dir, options.life, assignment.environment.host);
  }
  if (!options.probe.empty()) files.probe = std::make_unique<ProbeWriter>(options.probe, assignment.rank());
  if (options.profile) files.profile = std::make_unique<StepProfile>(options.run_dir, *options.profile);
  return files;
}

void StepFiles::TraceAfter(const Assignment& assignment, int64_t steps_done) {
  const std::optional<StepRange>& asked = assignment.options.profile;
  if (!asked || asked->first > steps_done) return;
  profile->GoOnAfter(steps_done);
  const std::string line =
      absl::StrCat("--trace asks for ", StepRangeText(*asked), ", and the run goes on after step ", steps_done,
                   ": this life traces ", profile->nothing_left() ? "none of them" : StepRangeText(profile->steps()),
                   "; `plan report` has what earlier lives traced");
  LogInfo(line);
  if (assignment.rank() != 0) return;
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

absl::Status StepFiles::Close() {
  absl::Status status;
  if (log != nullptr) status.Update(log->Close());
  if (events != nullptr) status.Update(events->Close());
  return status;
}

}  // namespace planwright::executor
