#include "planner/cli/submit_job.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/needs_of_job.h"
#include "planner/cli/open_fleet.h"
#include "planner/cli/own_program.h"
#include "planner/cli/show_job.h"
#include "planner/cli/temporary_folder.h"
#include "planner/cli/terminal.h"
#include "planner/plan/launch_environment.h"
#include "planner/run/launch/check_machine.h"
#include "planner/run/launch/recipe_environment.h"
#include "planner/run/slurm/cluster_limits.h"
#include "planner/run/slurm/job_script.h"
#include "planner/run/slurm/slurm_commands.h"
#include "planner/run/slurm/submitted_job.h"
#include "planner/views/show/show.h"
#include "planner/wire/rendezvous/interface_address.h"

namespace planwright {

namespace {

// Ranks of a container are in another folder than this program, so that paths of a plan may not depend on it.
void MakePathsAbsolute(Plan& plan) {
  plan.data.base = AbsolutePath(plan.data.base.empty() ? "." : plan.data.base);
  for (EvaluationSet& set : plan.evaluation.sets)
    set.data.base = AbsolutePath(set.data.base.empty() ? "." : set.data.base);
  if (!plan.initialize) return;
  plan.initialize->base = AbsolutePath(plan.initialize->base.empty() ? "." : plan.initialize->base);
  for (WeightSourcePlan& source : plan.initialize->sources)
    source.base = AbsolutePath(source.base.empty() ? "." : source.base);
}

// What the shell and the recipe give the job. In a container it runs where the container surely has a folder.
absl::Status PrepareJob(JobFiles& job) {
  for (Plan& plan : job.plans) {
    MakePathsAbsolute(plan);
    ABSL_ASSIGN_OR_RETURN(const Variables of_recipe, VariablesOfRecipe(plan.launch));
    for (const std::string& entry : plan.launch.env) {
      if (IsPassedOn(entry)) job.options.passed_on.insert_or_assign(entry, of_recipe.at(entry));
    }
  }
  if (!LargestPlan(job.plans).launch.container.empty()) job.folder = job.options.run_dir;
  return absl::OkStatus();
}

// Why the job would not be submitted, all of it.
std::vector<std::string> ProblemsOf(JobFiles& job, JobNeeds& needs,
                                    const absl::StatusOr<std::vector<Partition>>& partitions) {
  const Plan& plan = LargestPlan(job.plans);
  const LaunchPlan& launch = plan.launch;
  std::vector<std::string> problems = needs.problems;
  if (const absl::Status status = CheckLibraries(job, needs); !status.ok()) problems.emplace_back(status.message());
  if (!launch.container.empty()) {
    ContainerMounts mounts = MountsFor(launch, needs.files);
    for (const std::string& note : mounts.notes) std::cerr << "warning: " << Printable(note) << "\n";
    problems.insert(problems.end(), mounts.problems.begin(), mounts.problems.end());
    job.mounts = std::move(mounts.all);
    if (!SrunHasContainers().value_or(true)) {
      problems.emplace_back(
          "launch.slurm.container needs pyxis, a plugin of Slurm, and srun has no --container-image here: ask for it, "
          "or "
          "run ranks in a container by a line of launch.setup (docs/jobs.md)");
    }
  }
  if (absl::IsDeadlineExceeded(partitions.status())) problems.emplace_back(partitions.status().message());
  if (partitions.ok()) {
    const std::vector<std::string> limits = ClusterProblems(plan, *partitions);
    problems.insert(problems.end(), limits.begin(), limits.end());
  }
  return problems;
}

// This machine need not be like the nodes.
void WarnOfInterface(const std::string& interface) {
  if (interface.empty()) return;
  const absl::Status here = InterfaceAddress(interface).status();
  if (here.ok()) return;
  std::cerr << "warning: launch.interface: " << Printable(std::string(here.message()))
            << "; a job fails on nodes that have none of this name\n";
}

// A dry run does not run lines of a recipe, nor the executor with variables of one.
void WarnOfExecutor(Plan plan, const RunOptions& options) {
  plan.launch.setup.clear(), plan.launch.env.clear();
  const absl::Status fits = CheckExecutor(plan, options, /*here=*/false);
  if (!fits.ok()) std::cerr << "warning: this would be refused: " << Printable(std::string(fits.message())) << "\n";
}

// Asks Slurm about the script, without a file that stays.
void AskSlurm(ShownJob& shown) {
  const absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Make("planwright-job");
  if (!shown.slurm_answers || !folder.ok()) return;
  const std::string file = folder->path() + "/job.sbatch";
  if (!WriteFileAtomically(file, shown.script).ok()) return;
  shown.sbatch = std::string(TestScript(file).message());
}

}  // namespace

JobFiles JobHere() {
  std::error_code error;
  return {.environment = VariablesOfShell(), .program = OwnProgram(), .folder = std::filesystem::current_path(error)};
}

int SubmitJob(JobFiles job, int signal_seconds, bool dry_run, bool as_json) {
  const std::string run_dir = job.options.run_dir;
  if (absl::Status status = PrepareJob(job); !status.ok()) return UsageError(status);
  const Plan& plan = LargestPlan(job.plans);
  ShownJob shown;
  shown.needs = NeedsOf(job);
  const absl::StatusOr<std::vector<Partition>> partitions = PartitionsHere();
  shown.slurm_answers = partitions.ok() && !partitions->empty();
  shown.problems = ProblemsOf(job, shown.needs, partitions);
  WarnOfInterface(plan.launch.interface);
  shown.left_behind = LibraryVariablesLeftBehind(plan.launch);
  const JobScript options = {.program = job.program,
                             .run_dir = run_dir,
                             .signal_seconds = signal_seconds,
                             .mounts = job.mounts,
                             .trial = job.options.trial};
  const absl::StatusOr<std::string> script = RenderJobScript(plan, options);
  if (!script.ok()) return UsageError(script.status());
  const absl::StatusOr<std::vector<std::string>> srun =
      AgentStepCommand(plan, NodesOfPlan(plan), options, run_dir + "/job/head-JOB.json");
  if (!srun.ok()) return UsageError(srun.status());
  shown.script = *script, shown.srun = *srun;
  if (dry_run) {
    WarnOfExecutor(plan, job.options);
    AskSlurm(shown);
    std::cout << (as_json ? JsonText(JobJson(job, shown), 2) + "\n"
                          : PrintableLines(JobText(job, shown, LineWidth(STDOUT_FILENO, kShowWidth))));
    std::cout.flush();
  }
  if (const std::vector<std::string> hidden = SbatchVariables(); !hidden.empty()) {
    std::cerr << Printable("note: sbatch does not get " + absl::StrJoin(hidden, ", ") +
                           " of this shell; launch.slurm says what a job asks for")
              << "\n";
  }
  for (const std::string& problem : shown.problems) UsageError(absl::InvalidArgumentError(problem));
  if (!shown.problems.empty()) return kExitUsage;
  if (dry_run) return shown.sbatch.empty() ? kExitSuccess : UsageError(shown.sbatch);
  if (!shown.left_behind.empty()) {
    std::cerr << Printable("note: no rank gets " + absl::StrJoin(shown.left_behind, ", ") +
                           " of this shell; launch.env passes variables on")
              << "\n";
  }
  // Its files would be replaced, and it would train another plan than was submitted.
  if (const std::string before = JobOfScript(JobScriptPath(run_dir)); !before.empty()) {
    return UsageError(absl::StrCat("job ", Printable(before), " is of this run directory, ", Printable(run_dir),
                                   ": wait for its end or cancel it (scancel), or give another --run-dir"));
  }
  std::error_code error;
  const bool fresh = !std::filesystem::exists(run_dir, error);
  const bool first_job = !std::filesystem::exists(run_dir + "/job", error);
  if (absl::Status status = WriteJobFiles(job, *script); !status.ok()) return ReportFailedLaunch(status);
  if (!job.options.probe_dir.empty()) {
    if (absl::Status made = MakeDirectories(job.options.probe_dir); !made.ok()) return ReportFailedLaunch(made);
  }
  const absl::StatusOr<std::string> number = SubmitScript(JobScriptPath(run_dir));
  if (absl::IsDeadlineExceeded(number.status())) {
    // Its files stay for the job that there may be.
    return UsageError(absl::StrCat(number.status().message(), "; whether there is a job: squeue --me"));
  }
  if (!number.ok()) {
    if (fresh || first_job) std::filesystem::remove_all(fresh ? run_dir : run_dir + "/job", error);
    return UsageError(number.status());
  }
  if (absl::Status written = WriteJobNumber(run_dir, *number); !written.ok())
    std::cerr << "warning: " << Printable(std::string(written.message())) << "\n";
  const bool measures = job.measure.has_value();
  if (as_json) {
    nlohmann::ordered_json json = {{"job", *number}, {"run_dir", run_dir}};
    if (measures) json["path"] = job.measure->output;
    std::cout << JsonText(json, 2) << "\n";
  } else {
    const std::string folder = Printable(run_dir), job_number = Printable(*number);
    std::cout << "job " << job_number << "\n";
    std::cerr << "its output: " << folder << "/job/slurm-" << job_number << ".log\n";
    if (job.options.trial) {
      std::cerr << "the verdict will be at the end of it, and `plan status " << folder << " --follow` waits for it\n";
      return kExitSuccess;
    }
    measures ? std::cerr << "it will write " << Printable(job.measure->output) << "\n"
             : std::cerr << "run directory: " << folder << "\n";
  }
  return kExitSuccess;
}

}  // namespace planwright
