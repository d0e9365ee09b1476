#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/launch_report.h"
#include "planner/slurm/run_job.h"

namespace planwright {
namespace {

int Run(const Arguments& arguments) {
  if (arguments.words.size() != 1) return UsageError("give one run directory, and nothing else");
  const bool as_json = arguments.has("--json");
  const absl::StatusOr<Outcome> outcome = RunJob(arguments.words[0], PrintingTerminal(as_json));
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  return ReportRun(*outcome, arguments.words[0], as_json);
}

}  // namespace

CliCommand JobCommand() {
  return {"job",
          "what a Slurm job runs: the head of a submitted run",
          "RUN_DIR [--json]",
          {{"--json", "", "", "print the outcome as JSON on stdout, and everything else on stderr"}},
          "`plan launch --slurm` submits a script that calls it. It starts an agent on each node of the job, runs the "
          "plan, and\nhas the job put into the queue again when its time is over before the run is.\n",
          Run,
          "d"};
}

}  // namespace planwright
