#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/profile_text.h"
#include "planner/cli/terminal.h"
#include "planner/launch/launch_local.h"
#include "planner/run_files/exit_status.h"
#include "planner/show/show.h"

namespace planwright {
namespace {

std::string ExecutorBesideThisProgram() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "executor";
}

absl::StatusOr<LocalLaunch> LaunchOf(const Arguments& arguments) {
  if (arguments.has("--slurm")) return absl::InvalidArgumentError("`plan launch --slurm` is not built yet [PW0900]");
  if (!arguments.has("--local"))
    return absl::InvalidArgumentError("nothing says where to run: give --local for processes on this machine");
  LocalLaunch launch;
  launch.executor = arguments.value("--executor").value_or(ExecutorBesideThisProgram());
  launch.run_dir = arguments.value("--run-dir").value_or("");
  launch.probe_dir = arguments.value("--probe").value_or("");
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

// Refuses a plan that asks for what the executor does not do yet.
void CheckRunnable(LoadedPlan& loaded) {
  if (loaded.plan->checkpoint.every_steps > 0) {
    loaded.problems.Error(DiagnosticKind::kNotBuiltYet, {}, "ranks do not write checkpoints yet",
                          "remove checkpoint.every_steps from the recipe; such a run keeps nothing when it ends");
    loaded.plan.reset();
  }
}

int Report(const Outcome& outcome, const LocalLaunch& launch, bool as_json) {
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
  absl::StatusOr<LocalLaunch> launch = LaunchOf(arguments);
  if (!launch.ok()) return UsageError(std::string(launch.status().message()));
  LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  if (loaded.plan) CheckRunnable(loaded);
  loaded.PrintProblems(arguments.has("--json"));
  if (!loaded.plan) return loaded.exit_status();
  if (launch->run_dir.empty()) launch->run_dir = DefaultRunDirectory(*loaded.plan);
  if (absl::Status status = CheckLocalLaunch(*loaded.plan, *launch); !status.ok())
    return UsageError(std::string(status.message()));
  const bool as_json = arguments.has("--json");
  std::cout.flush();
  absl::StatusOr<Outcome> outcome = LaunchLocal(*loaded.plan, *launch, [&](bool is_error, std::string_view line) {
    (is_error || as_json ? std::cerr : std::cout) << line << std::endl;
  });
  if (!outcome.ok()) return UsageError(std::string(outcome.status().message()));
  return Report(*outcome, *launch, as_json);
}

}  // namespace

CliCommand LaunchCommand() {
  return {"launch",
          "runs a plan, one process for each rank",
          "RECIPE [OVERRIDE ...] --local [--run-dir DIR] [--steps N] [--profile STEP[-LAST]] [--probe DIR] "
          "[--device cpu|cuda]",
          {{"--local", "", "", "start all ranks on this machine"},
           {"--slurm", "", "", "not built yet"},
           {"--run-dir", "", "DIR", "for the plan, metrics, logs and outcome; default: runs/NAME-STAMP"},
           {"--steps", "", "N", "stop after N steps"},
           {"--profile", "", "STEP[-LAST]",
            "record when each instruction of these steps ran: a trace of each rank, and a table"},
           {"--probe", "", "DIR", "write whole parameters (before and after), gradients and values there"},
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
