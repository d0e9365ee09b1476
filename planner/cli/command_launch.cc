#include <filesystem>
#include <iostream>

#include "absl/strings/str_join.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/background_output.h"
#include "planner/cli/before_ranks.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/go_on.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/local_run.h"
#include "planner/cli/open_fleet.h"
#include "planner/cli/run_flags.h"
#include "planner/cli/submit_job.h"
#include "planner/cli/terminal.h"
#include "planner/cli/trial_files.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/run/launch/local_starter.h"
#include "planner/run/launch/recipe_environment.h"
#include "planner/run/launch_run.h"
#include "planner/run/slurm/job_script.h"
#include "planner/run/slurm/save_time.h"
#include "planner/run/trial/trial_folder.h"
#include "planner/state/checkpoint/trained_files.h"
#include "planner/views/diff/diff.h"
#include "planner/views/show/show.h"
#include "planner/wire/connection/proof.h"
#include "planner/wire/records/rank_trial.h"

namespace planwright {
namespace {

struct LaunchFlags : RunFlags {
  bool yes = false, trial = false;
};

// What else may stand beside --try: a trial has steps of its own, and keeps nothing.
absl::Status CheckTrial(const LaunchFlags& flags) {
  const RunOptions& run = flags.run;
  for (const auto& [given, name] : {std::pair(run.steps.has_value(), "--steps"),
                                    {run.profile.has_value(), "--trace"},
                                    {!run.probe_dir.empty(), "--probe"},
                                    {!run.record_routing.empty(), "--record-routing"},
                                    {!run.replay_routing.empty(), "--replay-routing"}}) {
    if (given) {
      return absl::InvalidArgumentError(std::string(name) + " is not for --try, which does " +
                                        std::to_string(kTrialSteps) + " steps and keeps nothing");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckFlags(const LaunchFlags& flags) {
  if (!flags.local && !flags.slurm && !flags.agents) {
    return absl::InvalidArgumentError(
        "nothing says where to run: give --local for processes on this machine, --slurm for a job of a Slurm cluster, "
        "or --agents for nodes on which you start `plan agent`");
  }
  ABSL_RETURN_IF_ERROR(CheckWay(flags));
  if (!flags.run.record_routing.empty() && !flags.run.replay_routing.empty())
    return absl::InvalidArgumentError("--record-routing and --replay-routing exclude each other");
  return flags.trial ? CheckTrial(flags) : absl::OkStatus();
}

absl::StatusOr<StepRange> ReadSteps(const std::string& name, const std::string& text) { return ReadStepRange(text); }

// The plans of the recipes to fall back to, in order. Their problems are printed; nullopt if one cannot be used.
std::optional<std::vector<Plan>> FallbacksOf(const Plan& plan) {
  std::vector<Plan> fallbacks;
  int nodes = NodesOfPlan(plan);
  for (const std::string& name : plan.launch.fallbacks) {
    const std::string path = std::filesystem::path(plan.launch.base) / name;
    LoadedPlan loaded = LoadPlan(path, {});
    loaded.PrintProblems(false);
    if (!loaded.plan) return std::nullopt;
    std::string problem;
    if (NodesOfPlan(*loaded.plan) >= nodes) {
      problem = "needs " + std::to_string(NodesOfPlan(*loaded.plan)) + " nodes, and the one before it " +
                std::to_string(nodes);
    } else if (DiffPlans(plan, *loaded.plan).may_change_loss()) {
      problem = "would change the loss curve (`plan diff` says how)";
    } else if (loaded.plan->checkpoint.every_steps == 0) {
      problem = "writes no checkpoints";
    }
    if (!problem.empty()) {
      UsageError("the fallback " + path + " " + problem);
      return std::nullopt;
    }
    nodes = NodesOfPlan(*loaded.plan);
    fallbacks.push_back(*std::move(loaded.plan));
  }
  return fallbacks;
}

constexpr int kTrialSignalSeconds = 60;  // there is nothing to save

int Submit(const std::vector<Plan>& plans, RunOptions options, const LaunchFlags& flags) {
  if (!options.record_routing.empty() || !options.replay_routing.empty())
    return UsageError("--record-routing and --replay-routing are for --local: their folders are of one machine");
  options.run_dir = AbsolutePath(options.run_dir);
  options.executor = AbsolutePath(options.executor);
  options.probe_dir = AbsolutePath(options.probe_dir);
  JobFiles job = JobHere();
  job.plans = plans, job.options = options;
  if (plans[0].checkpoint.every_steps == 0 && !flags.trial) {
    std::cerr << "warning: without checkpoint.every_steps this job cannot go on when its time is over or a node fails"
              << std::endl;
  }
  const int signal_seconds = flags.trial ? kTrialSignalSeconds : SecondsToSave(plans[0], options);
  return SubmitJob(job, signal_seconds, flags.dry_run, flags.json);
}

// Waits for an agent on each node, and runs the plan through them.
absl::StatusOr<Outcome> RunWithAgents(const std::vector<Plan>& plans, RunOptions options, const Terminal& terminal) {
  options.run_dir = AbsolutePath(options.run_dir);
  options.executor = AbsolutePath(options.executor);
  std::optional<Outcome> gone;
  ABSL_ASSIGN_OR_RETURN(const std::unique_ptr<Fleet> fleet, OpenFleet(plans[0], options.run_dir, terminal, gone));
  if (gone) return *gone;
  return LaunchRun(plans, options, *fleet, terminal);
}

// Variables of this shell that libraries read and the recipe does not name: where ranks are its processes they have
// them, and agents have those of their own shells.
void TellVariables(const LaunchPlan& launch, bool agents) {
  const std::vector<std::string> names = LibraryVariablesLeftBehind(launch);
  if (names.empty()) return;
  const std::string all = absl::StrJoin(names, ", ");
  std::cerr << Printable(agents
                             ? "note: agents do not get " + all + " of this shell; launch.env passes variables on"
                             : "note: ranks have " + all + " of this shell; launch.env keeps variables in the recipe")
            << "\n";
}

int RunAndReport(const std::vector<Plan>& plans, const RunOptions& options, const LaunchFlags& flags) {
  const BackgroundOutput output;  // from here on nobody has to read what is printed
  TellVariables(plans[0].launch, flags.agents);
  const Terminal terminal = PrintingTerminal(flags.json);
  const absl::StatusOr<Outcome> outcome =
      flags.agents ? RunWithAgents(plans, options, terminal) : RunHere(plans, options, terminal);
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  const int status = ReportRun(*outcome, options.run_dir, flags.json);
  if (flags.trial) return status;
  const std::string again = LaunchAgain(flags, options.run_dir, StoppedEarly(plans[0], options, *outcome));
  std::cerr << PrintableLines(GoOnText(plans[0], options, *outcome, again));
  return status;
}

int Launch(const LaunchFlags& flags) {
  const absl::StatusOr<RecipeWords> words = SplitWords(flags, {});
  if (!words.ok()) return UsageError(words.status());
  if (absl::Status status = CheckFlags(flags); !status.ok()) return UsageError(status);
  RunOptions launch = flags.run;
  LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(flags.json);
  if (!loaded.plan) return loaded.exit_status();
  if (launch.run_dir.empty()) launch.run_dir = DefaultRunDirectory(*loaded.plan);
  // Only where ranks run here must the interface exist here.
  const absl::Status interface =
      flags.local ? LocalStoreAddress(loaded.plan->launch.interface).status() : absl::OkStatus();
  // Of what has still to be counted nobody knows whether it has changed.
  const bool later = !flags.dry_run && HasUncountedSets(*loaded.plan);
  const auto changes = [&, run_dir = launch.run_dir](const Plan& plan) {
    return CheckChanges(plan, run_dir, flags.accept_changes);
  };
  for (const absl::Status& status :
       {interface, CheckRun(*loaded.plan, launch), later ? absl::OkStatus() : changes(*loaded.plan)}) {
    if (!status.ok()) return UsageError(status);
  }
  const std::optional<std::vector<Plan>> fallbacks = FallbacksOf(*loaded.plan);
  if (!fallbacks) return kExitInvalid;
  std::vector<Plan> plans = {*std::move(loaded.plan)};
  if (flags.trial) {
    // From here on it is a run of its own, beside the one that the launch would begin or go on with.
    launch.trial = true, launch.steps = kTrialSteps;
    launch.run_dir = TrialFolder(launch.run_dir);
    plans[0] = PlanOfTrial(std::move(plans[0]));
  } else {
    plans.insert(plans.end(), fallbacks->begin(), fallbacks->end());
  }
  std::cout.flush();
  if (!flags.dry_run) {
    const LaunchWay way = {.here = flags.local, .yes = flags.yes, .as_json = flags.json};
    if (const std::optional<int> status = CheckBeforeRanks(plans[0], launch, way)) return *status;
    std::map<std::string, std::string> digests, of_fallback;
    for (const Plan& plan : plans) {
      const int status = MakeIndexBeforeRanks(plan, &plan == &plans.front() ? digests : of_fallback);
      if (status != kExitSuccess) return status;
    }
    const absl::StatusOr<bool> counted = LoadCounted(words->path, words->overrides, plans[0]);
    if (!counted.ok()) return UsageError(counted.status());
    if (*counted) {
      const absl::Status same = later ? changes(plans[0]) : absl::OkStatus();
      if (!same.ok()) return UsageError(same);
      const std::optional<std::vector<Plan>> again = FallbacksOf(plans[0]);
      if (!again) return kExitInvalid;
      plans.resize(1);
      flags.trial ? void(plans[0] = PlanOfTrial(std::move(plans[0])))
                  : void(plans.insert(plans.end(), again->begin(), again->end()));
    }
    const absl::Status files = CheckFiles(plans[0], digests, launch.run_dir, flags.accept_changes);
    if (!files.ok()) return UsageError(files);
    // Ranks compare, too, as files may change between two lives. They go on with what was accepted, and nothing else.
    if (flags.accept_changes && Keeps(plans[0], launch)) launch.accepted_data = DigestOfAll(digests);
    if (flags.trial) {
      const absl::Status prepared =
          PrepareTrial(plans[0], AbsolutePath(launch.run_dir), FilesOfTrial(plans[0]), flags.local);
      if (!prepared.ok()) return ReportFailedLaunch(prepared);
    }
  }
  if (flags.slurm) {
    const std::optional<int> unfit = flags.dry_run ? CheckFilesOfJob(plans[0], launch) : std::nullopt;
    const int submitted = Submit(plans, launch, flags);
    if (unfit) return *unfit;
    // A later trial must not wait for a job that there is not.
    if (std::error_code error; submitted != kExitSuccess && flags.trial && !flags.dry_run)
      std::filesystem::remove_all(launch.run_dir, error);
    return submitted;
  }
  const int status = RunAndReport(plans, launch, flags);
  std::cout.clear();  // ReportRun has told of what could not be printed
  return status;
}

}  // namespace

CliCommand LaunchCommand() {
  const auto run = [](auto RunOptions::*part) { return At(&RunFlags::run, part); };
  CliCommand command = {"launch", "runs a plan, one process for each rank", Runs(Launch), "r+"};
  command.usage =
      "RECIPE [OVERRIDE ...] --local | --slurm [--dry-run] | --agents [--try] [--run-dir DIR [--accept-changes]] "
      "[--steps N] [--trace STEP[-LAST]] [--probe DIR] "
      "[--record-routing DIR | --replay-routing DIR] [--device cpu|cuda] [--yes]";
  command.options = {
      {"--local", &RunFlags::local, "start all ranks on this machine"},
      SlurmOption(),
      DryRunOption().With({"plan launch recipes/nemotron_moe_vlm_54l_33n.yaml --slurm --dry-run", "prints the job"}),
      AgentsOption(),
      Option(
          "--try", &LaunchFlags::trial,
          "two steps that keep nothing, and a verdict: whether ranks load and meet, files are readable, memory is as "
          "planned, losses are finite, and steps and links as fast as predicted")
          .With({"plan launch recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml --local --try",
                 "tries it before it is launched"}),
      Option("--run-dir DIR", run(&RunOptions::run_dir),
             "for the plan, metrics, logs and outcome; default: runs/NAME-STAMP. A run that it holds goes on from "
             "its newest checkpoint, on this plan's layout")
          .Writes(),
      {"--accept-changes", &RunFlags::accept_changes, "go on with a run though the loss curve may change"},
      {"--steps N", run(&RunOptions::steps), "stop after N steps", WholeNumbers{1, kMostSamples}},
      {"--trace STEP[-LAST]", run(&RunOptions::profile),
       "record when each instruction of these steps ran: a trace of all ranks for Perfetto, and a table", ReadSteps},
      Option("--probe DIR", run(&RunOptions::probe_dir),
             "write whole parameters (before and after), gradients and values there")
          .Writes(),
      Option("--record-routing DIR", run(&RunOptions::record_routing), "write there which experts each token chose")
          .Writes(),
      {"--replay-routing DIR", run(&RunOptions::replay_routing),
       "choose the experts that another run has written there"},
      DeviceOption("where ranks compute; default: cuda if the recipe's cluster has GPUs. Rank N takes GPU N"),
      {"--yes", &LaunchFlags::yes, "do not ask whether more ranks than cores are meant"},
      ExecutorOption(),
      JsonOption("print the outcome; the ranks' output goes to stderr"),
  };
  command.details =
      "Rank 0's output is printed line by line, that of the others as `[rank 3] ...`; control characters are written\n"
      "as \\x1b. If a rank fails, the others are ended within 2 seconds, and the message names the rank, its host, "
      "its\n"
      "instruction and the recipe line.\n";
  command.examples = {
      {"plan launch recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml --local", "trains a toy model on this machine"},
      {"plan launch recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml --local --run-dir runs/toy",
       "keeps the run there; the same line again goes on with it"},
  };
  command.see_also = {"status", "report", "checkpoint", "explain"},
  command.pages = {"docs/failures.md", "docs/checkpoints.md", "docs/agents.md", "docs/jobs.md", "docs/trials.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
