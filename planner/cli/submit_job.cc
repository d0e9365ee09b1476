#include "planner/cli/submit_job.h"

#include <filesystem>
#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/own_program.h"
#include "planner/run/slurm/job_script.h"
#include "planner/run/slurm/slurm_commands.h"

namespace planwright {

JobFiles JobHere() {
  std::error_code error;
  return {.environment = EnvironmentToTake(), .program = OwnProgram(), .folder = std::filesystem::current_path(error)};
}

int SubmitJob(const JobFiles& job, int signal_seconds, bool dry_run, bool as_json) {
  const std::string& run_dir = job.options.run_dir;
  const absl::StatusOr<std::string> script = RenderJobScript(
      LargestPlan(job.plans), {.program = job.program, .run_dir = run_dir, .signal_seconds = signal_seconds});
  if (!script.ok()) return UsageError(script.status());
  if (dry_run) {
    if (as_json) {
      nlohmann::ordered_json json = {{"script", *script}, {"launch", nlohmann::ordered_json::parse(LaunchJson(job))}};
      std::cout << JsonText(json, 2) << "\n";
    } else {
      std::cout << PrintableLines("# " + JobScriptPath(run_dir) + "\n" + *script + "\n# " + run_dir +
                                  "/job/launch.json\n" + LaunchJson(job));
    }
    return kExitSuccess;
  }
  if (absl::Status status = WriteJobFiles(job, *script); !status.ok()) return ReportFailedLaunch(status);
  const absl::StatusOr<std::string> number = SubmitScript(JobScriptPath(run_dir));
  if (!number.ok()) return UsageError(number.status());
  const bool measures = job.measure.has_value();
  if (as_json) {
    nlohmann::ordered_json json = {{"job", *number}, {"run_dir", run_dir}};
    if (measures) json["path"] = job.measure->output;
    std::cout << JsonText(json, 2) << "\n";
  } else {
    const std::string shown = Printable(run_dir), job_number = Printable(*number);
    std::cout << "job " << job_number << "\n";
    std::cerr << "its output: " << shown << "/job/slurm-" << job_number << ".log\n";
    measures ? std::cerr << "it will write " << Printable(job.measure->output) << "\n"
             : std::cerr << "run directory: " << shown << "\n";
  }
  return kExitSuccess;
}

}  // namespace planwright
