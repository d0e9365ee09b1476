#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/profile_text.h"
#include "planner/cli/terminal.h"
#include "planner/diff/diff.h"
#include "planner/launch/launch_run.h"
#include "planner/launch/local_starter.h"
#include "planner/plan/plan_json.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"
#include "planner/show/show.h"

namespace planwright {
namespace {

std::string ExecutorBesideThisProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "executor";
}

absl::StatusOr<RunOptions> LaunchOf(const Arguments& arguments) {
  if (arguments.has("--slurm")) return absl::InvalidArgumentError("`plan launch --slurm` is not built yet [PW0900]");
  if (!arguments.has("--local"))
    return absl::InvalidArgumentError("nothing says where to run: give --local for processes on this machine");
  RunOptions launch;
  launch.executor = arguments.value("--executor").value_or(ExecutorBesideThisProgram());
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
    absl::StatusOr<int64_t> steps = IntegerOption("--steps", *arguments.value("--steps"), 1);
    if (!steps.ok()) return steps.status();
    launch.steps = *steps;
  }
  if (arguments.has("--profile")) {
    absl::StatusOr<StepRange> steps = ReadStepRange(*arguments.value("--profile"));
    if (!steps.ok()) return steps.status();
    launch.profile = *steps;
  }
  return launch;
}

// Where the run directory holds a run of another plan: what going on with this one changes. InvalidArgument if the loss
// curve may change and the user has not accepted that.
absl::Status CheckChanges(const Plan& plan, const std::string& run_dir, bool accepted) {
  const std::string path = run_dir + "/plan.json";
  std::error_code error;
  if (plan.checkpoint.every_steps == 0 || !std::filesystem::exists(path, error)) return absl::OkStatus();
  const absl::StatusOr<std::string> text = ReadWholeFile(path);
  if (!text.ok()) return text.status();
  const absl::StatusOr<Plan> before = ReadPlan(*text);
  if (!before.ok()) return absl::InvalidArgumentError(path + ": " + std::string(before.status().message()));
  const PlanDiff diff = DiffPlans(*before, plan);
  if (diff.same()) return absl::OkStatus();
  std::cerr << DiffText(diff, "the run so far", "this plan", LineWidth(STDERR_FILENO, kShowWidth));
  if (!diff.may_change_loss() || accepted) return absl::OkStatus();
  return absl::InvalidArgumentError("going on with " + run_dir +
                                    " would change the loss curve as said above; give --accept-changes if that is "
                                    "meant, or choose another --run-dir");
}

int Report(const Outcome& outcome, const RunOptions& launch, bool as_json) {
  if (as_json) {
    nlohmann::ordered_json json = OutcomeJson(outcome);
    json["run_dir"] = launch.run_dir;
    std::cout << json.dump(2) << "\n";
  } else if (outcome.profile) {
    std::cout << RunProfileText(*outcome.profile, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  std::cerr << OutcomeText(outcome) << "run directory: " << launch.run_dir << "\n";
  return outcome.exit_code;
}

int Launch(const Arguments& arguments) {
  const absl::StatusOr<RecipeWords> words = SplitWords(arguments, {});
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  absl::StatusOr<RunOptions> launch = LaunchOf(arguments);
  if (!launch.ok()) return UsageError(std::string(launch.status().message()));
  LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(arguments.has("--json"));
  if (!loaded.plan) return loaded.exit_status();
  if (launch->run_dir.empty()) launch->run_dir = DefaultRunDirectory(*loaded.plan);
  for (const absl::Status& status : {CheckRun(*loaded.plan, *launch),
                                     CheckChanges(*loaded.plan, launch->run_dir, arguments.has("--accept-changes"))}) {
    if (!status.ok()) return UsageError(std::string(status.message()));
  }
  const bool as_json = arguments.has("--json");
  std::cout.flush();
  LocalStarter starter("127.0.0.1");
  absl::StatusOr<Outcome> outcome = LaunchRun({*loaded.plan}, *launch, starter, [&](bool is_error, std::string_view line) {
    (is_error || as_json ? std::cerr : std::cout) << line << std::endl;
  });
  if (!outcome.ok()) return UsageError(std::string(outcome.status().message()));
  return Report(*outcome, *launch, as_json);
}

}  // namespace

CliCommand LaunchCommand() {
  return {"launch",
          "runs a plan, one process for each rank",
          "RECIPE [OVERRIDE ...] --local [--run-dir DIR [--accept-changes]] [--steps N] [--profile STEP[-LAST]] "
          "[--probe DIR] "
          "[--record-routing DIR | --replay-routing DIR] [--device cpu|cuda]",
          {{"--local", "", "", "start all ranks on this machine"},
           {"--slurm", "", "", "not built yet"},
           {"--run-dir", "", "DIR",
            "for the plan, metrics, logs and outcome; default: runs/NAME-STAMP. A run that it holds goes on from its "
            "newest checkpoint, on this plan's layout"},
           {"--accept-changes", "", "", "go on with a run though the loss curve may change"},
           {"--steps", "", "N", "stop after N steps"},
           {"--profile", "", "STEP[-LAST]",
            "record when each instruction of these steps ran: a trace of each rank, and a table"},
           {"--probe", "", "DIR", "write whole parameters (before and after), gradients and values there"},
           {"--record-routing", "", "DIR", "write there which experts each token chose"},
           {"--replay-routing", "", "DIR", "choose the experts that another run has written there"},
           {"--device", "", "cpu|cuda",
            "where ranks compute; default: cuda if the recipe's cluster has GPUs. Rank N takes GPU N"},
           {"--executor", "", "FILE", "the executor program; default: the one beside `plan`"},
           {"--json", "", "", "print the outcome; the ranks' output goes to stderr"}},
          "Rank 0's output is printed as it is, that of the others as `[rank 3] ...`. If a rank fails, the others are\n"
          "ended within 2 seconds, and the message names the rank, its host, its instruction and the recipe line.\n",
          Launch,
          "r+"};
}

}  // namespace planwright
