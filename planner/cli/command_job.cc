#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/background_output.h"
#include "planner/cli/command.h"
#include "planner/cli/go_on.h"
#include "planner/cli/launch_report.h"
#include "planner/run/slurm/run_job.h"

namespace planwright {
namespace {

std::string GoOnTextOf(const EndedJob& ended, const std::string& run_dir) {
  const JobFiles& job = ended.job;
  const bool early = !job.measure && StoppedEarly(job.plans[0], job.options, ended.outcome);
  const std::string command = SubmitAgain(job.program, run_dir, ended.task, early);
  if (!job.measure) return GoOnText(job.plans[0], job.options, ended.outcome, command);
  return ended.outcome.exit_code == kExitSuccess ? "" : "to go on with what is not measured:\n  " + command + "\n";
}

int RunAndReport(const std::string& run_dir, bool as_json) {
  const BackgroundOutput output;
  const absl::StatusOr<EndedJob> ended = RunJob(run_dir, PrintingTerminal(as_json));
  if (!ended.ok()) return ReportFailedLaunch(ended.status());
  const int status = ReportRun(ended->outcome, run_dir, as_json);
  if (!ended->comes_back && !ended->job.options.trial) std::cerr << PrintableLines(GoOnTextOf(*ended, run_dir));
  return status;
}

int RunSubmitted(const CommandOptions& options) {
  if (options.words.size() != 1) return UsageError("give one run directory, and nothing else");
  const int status = RunAndReport(options.words[0], options.json);
  std::cout.clear();  // ReportRun has told of what could not be printed
  return status;
}

}  // namespace

CliCommand JobCommand() {
  CliCommand command = {"job", "what a Slurm job runs: the head of a submitted run", Runs(RunSubmitted), "d"};
  command.usage = "RUN_DIR [--json]";
  command.options = {
      JsonOption("print the outcome as JSON on stdout, and everything else on stderr"),
  };
  command.details =
      "`plan launch --slurm` submits a script that calls it. It starts an agent on each node of the job, runs the "
      "plan, and\n"
      "has the job put into the queue again when its time is over before the run is.\n";
  command.examples = {{"plan job runs/toy", "in a job's script"}};
  command.see_also = {"launch"}, command.pages = {"docs/agents.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
