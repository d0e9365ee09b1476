// `plan evaluate`: the evaluation sets of a recipe with the weights of a checkpoint, on any layout; and logits beside
// those of another program (evaluate_against.h).

#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/line_file.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/background_output.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/evaluate_against.h"
#include "planner/cli/evaluation_run.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/temporary_folder.h"
#include "planner/cli/terminal.h"
#include "planner/plan/plan.h"
#include "planner/views/report/report_text.h"
#include "planner/views/show/show.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/step_record.h"

namespace planwright {
namespace {

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

int Evaluate(const EvaluateFlags& flags) {
  if (!flags.against.empty()) return EvaluateAgainst(flags);
  if (flags.has("--tolerance")) return UsageError("--tolerance is of a comparison of logits: it goes with --against");
  if (flags.words.empty()) return UsageError("`plan evaluate` needs a checkpoint, or a run directory, and a recipe");
  Arguments of_recipe = flags;
  of_recipe.words.erase(of_recipe.words.begin());
  absl::StatusOr<RecipeWords> words = SplitWords(of_recipe, {});
  if (!words.ok()) return UsageError(words.status());
  if (words->path.ends_with(".json")) {
    return UsageError(
        Printable(words->path) +
        " is a compiled plan, whose weights are fixed; with those of a checkpoint its recipe is compiled: "
        "give the recipe (.yaml)");
  }
  RunOptions options = flags.run;
  const absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(flags.words[0]);
  if (!named.ok()) return FailedWeights(named.status(), "");
  const std::string& checkpoint = named->checkpoint.folder;
  for (std::string& override : OverridesOfWeights(named->checkpoint, *words))
    words->overrides.push_back(std::move(override));
  LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(flags.json);
  if (!loaded.plan) return loaded.exit_status();
  if (loaded.plan->evaluation.empty())
    return UsageError(Printable(words->path) + " has no evaluation.sets, so there is nothing to evaluate");
  // Here, as each rank would say it.
  if (absl::Status fits = CheckWeights(*loaded.plan, &named->checkpoint); !fits.ok())
    return FailedWeights(fits, checkpoint);
  const absl::Status same = CheckEvaluatedModel(*loaded.plan, named->checkpoint, flags.accept_changes);
  if (!same.ok()) return FailedWeights(same, checkpoint);
  if (const int status = MakeIndexOfSets(*loaded.plan); status != kExitSuccess) return status;
  const absl::StatusOr<bool> counted = LoadCounted(words->path, words->overrides, *loaded.plan);
  if (!counted.ok()) return UsageError(counted.status());
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
  const absl::StatusOr<Outcome> outcome = RunEvaluation(*loaded.plan, options);
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  const bool by_itself = outcome->exit_code != kExitSuccess && outcome->interrupted_by == 0;
  if (by_itself && TellRemoved(checkpoint)) return kExitUsage;
  if (outcome->exit_code != kExitSuccess) return ReportRun(*outcome, temporary ? "" : options.run_dir, flags.json);
  const absl::StatusOr<EvaluationRecord> record = ResultOf(options.run_dir);
  if (!record.ok()) return UsageError(Printable(std::string(record.status().message())));
  return PrintResult(*record, *named, flags.json);
}

// A tolerance of 0 would let no rounding pass, and everything is within one of 10.
absl::StatusOr<double> ReadTolerance(const std::string& name, const std::string& text) {
  double tolerance = 0;
  if (absl::SimpleAtod(text, &tolerance) && tolerance >= 1e-15 && tolerance <= 10) return tolerance;
  return absl::InvalidArgumentError(
      Cat(name, " must be a number from 1e-15 to 10, of the spread of the logits; found `", text, "`"));
}

}  // namespace

CliCommand EvaluateCommand() {
  CliCommand command = {"evaluate",
                        "evaluates weights: on the evaluation sets of a recipe, or beside another program's logits",
                        Runs(Evaluate), "dr+"};
  command.usage =
      "CHECKPOINT RECIPE [OVERRIDE ...] | [CHECKPOINT] RECIPE [OVERRIDE ...] --against LOGITS [--tolerance X] "
      "[--accept-changes] [--device cpu|cuda] [--run-dir DIR] [--json]";
  command.options = {
      Option("--against FILE", &EvaluateFlags::against,
             "compare logits with those that another program computed of the same tokens (safetensors)",
             NameOf{"a file"})
          .With({"plan evaluate qwen.yaml --against LOGITS.safetensors",
                 "whether imported weights compute here what transformers computes"}),
      Option(
          "--tolerance X", &EvaluateFlags::tolerance,
          "with --against: how far the median position may be apart, of the spread of logits, and any 20 times that; "
          "default: 1e-9 in fp64, 1e-4 in fp32, 0.01 in fp16, 0.05 in bf16, the coarser of both",
          ReadTolerance),
      DeviceOption("where ranks compute; default: cuda if the recipe's cluster has GPUs. Rank N takes GPU N"),
      Option("--run-dir DIR", At(&RunFlags::run, &RunOptions::run_dir), "keep plan, logs and metrics of this run there")
          .Writes(),
      {"--accept-changes", &RunFlags::accept_changes,
       "evaluate though the recipe has another model than the checkpoint's run"},
      ExecutorOption(),
      JsonOption("print the losses, or the comparison, for scripts"),
  };
  command.details =
      "CHECKPOINT is a checkpoint, or a run directory, which means its newest one. RECIPE is a recipe, not a compiled\n"
      "plan. It has the model of the checkpoint; its layout and its precision may be others. Its ranks run on this\n"
      "machine, load weights alone, and evaluate once. Nothing is trained, and nothing is written to the run of the\n"
      "checkpoint.\n"
      "\n"
      "With --against, the weights are those of CHECKPOINT or, without one, of `initialize` of the recipe. Neither "
      "its\n"
      "data nor its evaluation sets are read. Ends with 0 if it is the same model, and with 1 if it is not.\n";
  command.examples = {{"plan evaluate runs/toy recipes/icons_held_out_8r_toy.yaml", "evaluates the newest checkpoint"}};
  command.see_also = {"checkpoint", "launch", "import"},
  command.pages = {"docs/training/evaluation.md", "docs/hugging_face.md"};
  command.runs = true;
  return command;
}

}  // namespace planwright
