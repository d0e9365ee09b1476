// `plan evaluate`: the evaluation sets of a recipe with the weights of a checkpoint, on any layout.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/files/line_file.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/background_output.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/live_bar.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/local_run.h"
#include "planner/cli/run_flags.h"
#include "planner/cli/temporary_folder.h"
#include "planner/cli/terminal.h"
#include "planner/plan/earlier_parts.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/remove_checkpoint.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/weights/fit.h"
#include "planner/views/diff/diff.h"
#include "planner/views/report/report_text.h"
#include "planner/views/show/show.h"
#include "planner/wire/records/evaluated_round.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/recorder_reader.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

// A run that goes on removes its older checkpoints.
bool TellRemoved(const std::string& checkpoint) {
  if (!IsRemoved(checkpoint)) return false;
  UsageError(Printable(checkpoint) +
             " was removed while it was evaluated; a run keeps only some of its checkpoints (checkpoint.keep_last): "
             "evaluate a newer one");
  return true;
}

// As UsageError: a damaged checkpoint has a status of its own.
int FailedCheckpoint(const absl::Status& status) {
  UsageError(PrintableLines(std::string(status.message())));
  return absl::IsDataLoss(status) ? kExitDamaged : kExitUsage;
}

// Of the model, and more than a matter of training: the loss of given weights depends on it.
bool ChangesLossOfWeights(const PlanChange& change) {
  if (!change.may_change_loss) return false;
  if (change.area == "bridges") return !absl::StrContains(change.path, "max_mean_square");
  for (const std::string_view of_training :
       {"init_std", "moe.aux_loss", "moe.bias_rate", "output.layers", "constants.crop"}) {
    if (change.path.ends_with(of_training)) return false;
  }
  return absl::StrContains(change.path, ".constants") || absl::StrContains(change.path, ".layers");
}

// Whether an evaluation computes the model that a checkpoint was trained as. Weights fit by their shapes alone; numbers
// such as moe.scale have none. Compares the model of the plan with that of the plan in the checkpoint, except what only
// training asks for, and prints what differs. InvalidArgument if something does and the user has not accepted that;
// DataLoss if the checkpoint is damaged.
absl::Status CheckEvaluatedModel(const Plan& plan, const FoundCheckpoint& checkpoint, bool accepted) {
  ABSL_ASSIGN_OR_RETURN(OwnPlan wrote, ReadAndCheckOwnPlan(checkpoint.folder, checkpoint.manifest));
  if (!wrote.plan) {
    std::cerr << Printable(
                     "note: the plan of the checkpoint is not read, so its model is not compared with that of the "
                     "recipe: " +
                     wrote.unread)
              << "\n";
    return absl::OkStatus();
  }
  DropEarlierParts(*wrote.plan);
  PlanDiff diff = DiffPlans(*wrote.plan, plan);
  std::erase_if(diff.changes, [](const PlanChange& change) { return !ChangesLossOfWeights(change); });
  if (diff.same()) return absl::OkStatus();
  std::cerr << DiffText(diff, "the model of the checkpoint", "that of the recipe",
                        LineWidth(STDERR_FILENO, kShowWidth));
  if (accepted) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the recipe has another model than " + checkpoint.folder +
      ", as said above; evaluate with the model of its run, or give --accept-changes if that is meant");
}

// The recipe, so that its run begins with these weights, and with nothing else of the checkpoint. What the recipe
// itself begins with does not matter.
LoadedPlan LoadWithWeights(const RecipeWords& words, const std::string& checkpoint) {
  std::error_code error;
  const std::string folder = std::filesystem::absolute(checkpoint, error).lexically_normal().string();
  std::vector<std::string> overrides = words.overrides;
  overrides.emplace_back("initialize=none");  // maps are merged, so the recipe's own goes first
  overrides.push_back("initialize={from: " + JsonText(nlohmann::json(folder)) +
                      ", optimizer: false, schedule: recipe}");
  return LoadPlan(words.path, overrides);
}

// A run that is there would go on from its own checkpoints.
absl::Status CheckNew(const std::string& run_dir) {
  std::error_code error;
  if (!std::filesystem::exists(run_dir, error) || std::filesystem::is_empty(run_dir, error)) return absl::OkStatus();
  return absl::AlreadyExistsError(run_dir + " is not empty; choose another --run-dir, or leave it out");
}

absl::StatusOr<EvaluationRecord> ResultOf(const std::string& run_dir) {
  absl::StatusOr<LineFile> file = LineFile::Open(StepsPath(run_dir));
  if (!file.ok()) return file.status();
  ABSL_ASSIGN_OR_RETURN(std::optional<EvaluationRecord> found, NewestEvaluation(*file));
  if (!found) return absl::NotFoundError(file->path() + " has no evaluation");
  return *std::move(found);
}

std::string ResultText(const EvaluationRecord& record, size_t width) {
  Table table({"set", "source", "loss", "tokens"});
  const auto add = [&](const std::string& set, const std::string& source, const MeanLoss& mean) {
    table.Add({Printable(set), Printable(source), LossText(mean, "%.9g"), WithCommas(mean.tokens)});
  };
  for (const EvaluatedSet& set : record.sets) {
    add(set.name, set.sources.size() == 1 ? set.sources[0].first : "", set.all);
    if (set.sources.size() < 2) continue;
    for (const auto& [source, mean] : set.sources) add("", source, mean);
  }
  return table.Text("", width);
}

int PrintResult(const EvaluationRecord& record, const NamedCheckpoint& named, bool as_json) {
  const Manifest& manifest = named.checkpoint.manifest;
  if (as_json) {
    nlohmann::ordered_json json = EvaluationRecordJson(record);
    json["step"] = manifest.counters.step, json["consumed_samples"] = manifest.counters.consumed_samples;
    json["checkpoint"] = named.checkpoint.folder;
    std::cout << JsonText(json, 2) << "\n";
  } else {
    std::cout << Printable(named.checkpoint.folder) << ", after step " << WithCommas(manifest.counters.step) << "\n\n"
              << ResultText(record, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return kExitSuccess;
}

// How far rank 0 is. None: it has not begun.
std::optional<LiveBar::Progress> ProgressOf(const Plan& plan, const std::string& run_dir) {
  const std::optional<RankPosition> rank = ReadRecorder(run_dir, 0);
  if (!rank || !rank->last) return std::nullopt;
  std::optional<int64_t> done;
  int64_t all = 0;
  std::string what;
  for (const EvaluationSet& set : plan.evaluation.sets) {
    if (const auto round = ReadEvaluatedRound(rank->last->path, set.name, set.rounds)) {
      done = all + *round;
      what = absl::StrCat("round ", *round + 1, " of ", set.rounds, " of ", set.name);
    }
    all += set.rounds;
  }
  if (!done) return std::nullopt;
  return LiveBar::Progress{static_cast<double>(*done) / static_cast<double>(all), what};
}

int Evaluate(const RunFlags& flags) {
  if (flags.words.empty()) return UsageError("`plan evaluate` needs a checkpoint, or a run directory, and a recipe");
  Arguments of_recipe = flags;
  of_recipe.words.erase(of_recipe.words.begin());
  const absl::StatusOr<RecipeWords> words = SplitWords(of_recipe, {});
  if (!words.ok()) return UsageError(words.status());
  RunOptions options = flags.run;
  options.steps = 0;
  const absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(flags.words[0]);
  if (!named.ok()) return FailedCheckpoint(named.status());
  const std::string& checkpoint = named->checkpoint.folder;
  const auto failed = [&](const absl::Status& status) {
    return TellRemoved(checkpoint) ? static_cast<int>(kExitUsage) : FailedCheckpoint(status);
  };
  LoadedPlan loaded = LoadWithWeights(*words, checkpoint);
  loaded.PrintProblems(flags.json);
  if (!loaded.plan) return loaded.exit_status();
  if (loaded.plan->evaluation.empty())
    return UsageError(Printable(words->path) + " has no evaluation.sets, so there is nothing to evaluate");
  // Here, as each rank would say it.
  if (absl::Status fits = FitWeights(*loaded.plan).status(); !fits.ok()) return failed(fits);
  const absl::Status same = CheckEvaluatedModel(*loaded.plan, named->checkpoint, flags.accept_changes);
  if (!same.ok()) return failed(same);
  if (const int status = MakeIndexOfSets(*loaded.plan); status != kExitSuccess) return status;
  const BackgroundOutput output;  // a closed pipe ends the program only when the folder is gone
  std::optional<TemporaryFolder> temporary;
  if (flags.has("--run-dir")) {
    if (absl::Status fresh = CheckNew(options.run_dir); !fresh.ok())
      return UsageError(Printable(std::string(fresh.message())));
  } else {
    absl::StatusOr<TemporaryFolder> made = TemporaryFolder::Make("plan-evaluate");
    if (!made.ok()) return UsageError(std::string(made.status().message()) + "; give --run-dir");
    temporary.emplace(*std::move(made));
    options.run_dir = temporary->path() + "/run";
  }
  if (absl::Status fits = CheckRun(*loaded.plan, options); !fits.ok()) return UsageError(fits);
  // What ranks print goes to stderr: the result is the command's output.
  const absl::StatusOr<Outcome> outcome = [&] {
    LiveBar bar([&] { return ProgressOf(*loaded.plan, options.run_dir); });
    return RunHere({*loaded.plan}, options, [&, print = PrintingTerminal(true)](bool is_error, std::string_view line) {
      bar.Aside([&] { print(is_error, line); });
    });
  }();
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  const bool by_itself = outcome->exit_code != kExitSuccess && outcome->interrupted_by == 0;
  if (by_itself && TellRemoved(checkpoint)) return kExitUsage;
  if (outcome->exit_code != kExitSuccess) return ReportRun(*outcome, temporary ? "" : options.run_dir, flags.json);
  const absl::StatusOr<EvaluationRecord> record = ResultOf(options.run_dir);
  if (!record.ok()) return UsageError(Printable(std::string(record.status().message())));
  return PrintResult(*record, *named, flags.json);
}

}  // namespace

CliCommand EvaluateCommand() {
  CliCommand command = {"evaluate", "evaluates the weights of a checkpoint on the evaluation sets of a recipe",
                        Runs(Evaluate), "dr+"};
  command.usage = "CHECKPOINT RECIPE [OVERRIDE ...] [--accept-changes] [--device cpu|cuda] [--run-dir DIR] [--json]";
  command.options = {
      DeviceOption("where ranks compute; default: cuda if the recipe's cluster has GPUs. Rank N takes GPU N"),
      Option("--run-dir DIR", At(&RunFlags::run, &RunOptions::run_dir), "keep plan, logs and metrics of this run there")
          .Writes(),
      {"--accept-changes", &RunFlags::accept_changes,
       "evaluate though the recipe has another model than the checkpoint's run"},
      ExecutorOption(),
      JsonOption("print the losses for scripts"),
  };
  command.details =
      "CHECKPOINT is a checkpoint, or a run directory, which means its newest one. RECIPE has the model of the\n"
      "checkpoint; its layout and its precision may be others. Its ranks run on this machine, load weights alone,\n"
      "and evaluate once. Nothing is trained, and nothing is written to the run of the checkpoint.\n";
  command.examples = {{"plan evaluate runs/toy recipes/icons_held_out_8r_toy.yaml", "evaluates the newest checkpoint"}};
  command.see_also = {"checkpoint", "launch"}, command.pages = {"docs/training/evaluation.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
