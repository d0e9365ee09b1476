#include <filesystem>
#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/text/limits.h"
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
#include "planner/cli/own_program.h"
#include "planner/cli/submit_job.h"
#include "planner/cli/terminal.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/run/launch/local_starter.h"
#include "planner/run/launch_run.h"
#include "planner/run/slurm/job_script.h"
#include "planner/run/slurm/save_time.h"
#include "planner/views/diff/diff.h"
#include "planner/views/show/show.h"
#include "planner/wire/connection/proof.h"

namespace planwright {
namespace {

absl::StatusOr<RunOptions> LaunchOf(const Arguments& arguments) {
  const int ways = arguments.has("--local") + arguments.has("--slurm") + arguments.has("--agents");
  if (ways == 0) {
    return absl::InvalidArgumentError(
        "nothing says where to run: give --local for processes on this machine, --slurm for a job of a Slurm cluster, "
        "or --agents for nodes on which you start `plan agent`");
  }
  if (ways > 1) return absl::InvalidArgumentError("--local, --slurm and --agents exclude each other");
  if (arguments.has("--dry-run") && !arguments.has("--slurm"))
    return absl::InvalidArgumentError("--dry-run shows what --slurm would submit; add --slurm");
  RunOptions launch;
  launch.executor = arguments.value("--executor").value_or(ExecutorBesidePlan());
  launch.run_dir = arguments.value("--run-dir").value_or("");
  launch.probe_dir = arguments.value("--probe").value_or("");
  launch.record_routing = arguments.value("--record-routing").value_or("");
  launch.replay_routing = arguments.value("--replay-routing").value_or("");
  if (!launch.record_routing.empty() && !launch.replay_routing.empty())
    return absl::InvalidArgumentError("--record-routing and --replay-routing exclude each other");
  launch.device = arguments.value("--device").value_or("");
  if (!launch.device.empty() && launch.device != "cpu" && launch.device != "cuda") {
    return absl::InvalidArgumentError("--device must be cpu or cuda; found `" + launch.device + "`");
  }
  if (arguments.has("--steps")) {
    absl::StatusOr<int64_t> steps = IntegerOption("--steps", *arguments.value("--steps"), 1, kMostSamples);
    if (!steps.ok()) return steps.status();
    launch.steps = *steps;
  }
  if (arguments.has("--trace")) {
    absl::StatusOr<StepRange> steps = ReadStepRange(*arguments.value("--trace"));
    if (!steps.ok()) return steps.status();
    launch.profile = *steps;
  }
  return launch;
}

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

int Submit(const std::vector<Plan>& plans, RunOptions options, const Arguments& arguments) {
  if (!options.record_routing.empty() || !options.replay_routing.empty())
    return UsageError("--record-routing and --replay-routing are for --local: their folders are of one machine");
  options.run_dir = AbsolutePath(options.run_dir);
  options.executor = AbsolutePath(options.executor);
  options.probe_dir = AbsolutePath(options.probe_dir);
  JobFiles job = JobHere();
  job.plans = plans, job.options = options;
  if (plans[0].checkpoint.every_steps == 0) {
    std::cerr << "warning: without checkpoint.every_steps this job cannot go on when its time is over or a node fails"
              << std::endl;
  }
  return SubmitJob(job, SecondsToSave(plans[0], options), arguments.has("--dry-run"), arguments.has("--json"));
}

// Waits for an agent on each node, and runs the plan through them.
absl::StatusOr<Outcome> RunWithAgents(const std::vector<Plan>& plans, RunOptions options, const Terminal& terminal) {
  options.run_dir = AbsolutePath(options.run_dir);
  options.executor = AbsolutePath(options.executor);
  std::optional<Outcome> gone;
  const absl::StatusOr<std::unique_ptr<Fleet>> fleet = OpenFleet(plans[0], options.run_dir, terminal, gone);
  if (!fleet.ok()) return fleet.status();
  if (gone) return *gone;
  return LaunchRun(plans, options, **fleet, terminal);
}

int RunAndReport(const std::vector<Plan>& plans, const RunOptions& options, const Arguments& arguments) {
  const bool as_json = arguments.has("--json");
  const BackgroundOutput output;
  const Terminal terminal = PrintingTerminal(as_json);
  const absl::StatusOr<Outcome> outcome =
      arguments.has("--agents") ? RunWithAgents(plans, options, terminal) : RunHere(plans, options, terminal);
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  const int status = ReportRun(*outcome, options.run_dir, as_json);
  const std::string again = LaunchAgain(arguments, options.run_dir, StoppedEarly(plans[0], options, *outcome));
  std::cerr << PrintableLines(GoOnText(plans[0], options, *outcome, again));
  return status;
}

int Launch(const Arguments& arguments) {
  const absl::StatusOr<RecipeWords> words = SplitWords(arguments, {});
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  absl::StatusOr<RunOptions> launch = LaunchOf(arguments);
  if (!launch.ok()) return UsageError(std::string(launch.status().message()));
  const bool as_json = arguments.has("--json");
  LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(as_json);
  if (!loaded.plan) return loaded.exit_status();
  if (launch->run_dir.empty()) launch->run_dir = DefaultRunDirectory(*loaded.plan);
  // Only where ranks run here must the interface exist here.
  const absl::Status interface =
      arguments.has("--local") ? LocalStoreAddress(loaded.plan->launch.interface).status() : absl::OkStatus();
  for (const absl::Status& status : {interface, CheckRun(*loaded.plan, *launch),
                                     CheckChanges(*loaded.plan, launch->run_dir, arguments.has("--accept-changes"))}) {
    if (!status.ok()) return UsageError(std::string(status.message()));
  }
  const std::optional<std::vector<Plan>> fallbacks = FallbacksOf(*loaded.plan);
  if (!fallbacks) return kExitInvalid;
  std::vector<Plan> plans = {*std::move(loaded.plan)};
  plans.insert(plans.end(), fallbacks->begin(), fallbacks->end());
  std::cout.flush();
  if (!arguments.has("--dry-run")) {
    const LaunchWay way = {.here = arguments.has("--local"), .yes = arguments.has("--yes"), .as_json = as_json};
    if (const std::optional<int> status = CheckBeforeRanks(plans[0], *launch, way)) return *status;
    std::map<std::string, std::string> digests, of_fallback;
    for (const Plan& plan : plans) {
      const int status = MakeIndexBeforeRanks(plan, &plan == &plans.front() ? digests : of_fallback);
      if (status != kExitSuccess) return status;
    }
    const absl::Status files = CheckFiles(plans[0], digests, launch->run_dir, arguments.has("--accept-changes"));
    if (!files.ok()) return UsageError(std::string(files.message()));
  }
  if (arguments.has("--slurm")) return Submit(plans, *launch, arguments);
  const int status = RunAndReport(plans, *launch, arguments);
  std::cout.clear();  // ReportRun has told of what could not be printed
  return status;
}

}  // namespace

CliCommand LaunchCommand() {
  return {
      "launch",
      "runs a plan, one process for each rank",
      "RECIPE [OVERRIDE ...] --local | --slurm [--dry-run] | --agents [--run-dir DIR [--accept-changes]] "
      "[--steps N] [--trace STEP[-LAST]] [--probe DIR] "
      "[--record-routing DIR | --replay-routing DIR] [--device cpu|cuda] [--yes]",
      {{"--local", "", "", "start all ranks on this machine"},
       {"--slurm", "", "", "submit a job to a Slurm cluster; launch.slurm has its options"},
       {"--dry-run", "", "", "print what --slurm would submit, and do nothing"},
       {"--agents", "", "", "run on nodes on which you start `plan agent` yourself"},
       {"--run-dir", "", "DIR",
        "for the plan, metrics, logs and outcome; default: runs/NAME-STAMP. A run that it holds goes on from its "
        "newest checkpoint, on this plan's layout",
        /*writes=*/true},
       {"--accept-changes", "", "", "go on with a run though the loss curve may change"},
       {"--steps", "", "N", "stop after N steps"},
       {"--trace", "", "STEP[-LAST]",
        "record when each instruction of these steps ran: a trace of all ranks for Perfetto, and a table"},
       {"--probe", "", "DIR", "write whole parameters (before and after), gradients and values there", /*writes=*/true},
       {"--record-routing", "", "DIR", "write there which experts each token chose", /*writes=*/true},
       {"--replay-routing", "", "DIR", "choose the experts that another run has written there"},
       {"--device", "", "cpu|cuda",
        "where ranks compute; default: cuda if the recipe's cluster has GPUs. Rank N takes GPU N"},
       {"--yes", "", "", "do not ask whether more ranks than cores are meant"},
       {"--executor", "", "FILE", "the executor program; default: the one beside `plan`"},
       {"--json", "", "", "print the outcome; the ranks' output goes to stderr"}},
      "Rank 0's output is printed line by line, that of the others as `[rank 3] ...`; control characters are written\n"
      "as \\x1b. If a rank fails, the others are ended within 2 seconds, and the message names the rank, its host, "
      "its\n"
      "instruction and the recipe line.\n",
      Launch,
      "r+"};
}

}  // namespace planwright
