// `plan evaluate`: the evaluation sets of a recipe with the weights of a checkpoint, on any layout.

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "planner/checkpoint/run_lives.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/local_run.h"
#include "planner/cli/own_program.h"
#include "planner/cli/temporary_folder.h"
#include "planner/cli/terminal.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"
#include "planner/plan/json_text.h"
#include "planner/report/report_text.h"
#include "planner/run_files/exit_status.h"
#include "planner/run_files/file_io.h"
#include "planner/run_files/line_file.h"
#include "planner/run_files/outcome.h"
#include "planner/run_files/step_record.h"
#include "planner/show/show.h"
#include "planner/show/table.h"
#include "planner/weights/fit.h"

namespace planwright {
namespace {

// As UsageError: a damaged checkpoint has a status of its own.
int FailedCheckpoint(const absl::Status& status) {
  UsageError(PrintableLines(std::string(status.message())));
  return absl::IsDataLoss(status) ? kExitDamaged : kExitUsage;
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
  absl::StatusOr<std::optional<EvaluationRecord>> found = NewestEvaluation(*file);
  if (!found.ok()) return found.status();
  if (!*found) return absl::NotFoundError(file->path() + " has no evaluation");
  return **std::move(found);
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

int Evaluate(const Arguments& arguments) {
  if (arguments.words.empty())
    return UsageError("`plan evaluate` needs a checkpoint, or a run directory, and a recipe");
  Arguments of_recipe = arguments;
  of_recipe.words.erase(of_recipe.words.begin());
  const absl::StatusOr<RecipeWords> words = SplitWords(of_recipe, {});
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  RunOptions options;
  options.executor = arguments.value("--executor").value_or(ExecutorBesidePlan());
  options.device = arguments.value("--device").value_or("");
  if (!options.device.empty() && options.device != "cpu" && options.device != "cuda")
    return UsageError("--device must be cpu or cuda; found `" + options.device + "`");
  options.steps = 0;
  const absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(arguments.words[0]);
  if (!named.ok()) return FailedCheckpoint(named.status());
  const bool as_json = arguments.has("--json");
  LoadedPlan loaded = LoadWithWeights(*words, named->checkpoint.folder);
  loaded.PrintProblems(as_json);
  if (!loaded.plan) return loaded.exit_status();
  if (loaded.plan->evaluation.empty())
    return UsageError(Printable(words->path) + " has no evaluation.sets, so there is nothing to evaluate");
  // Here, as each rank would say it.
  if (absl::Status fits = FitWeights(*loaded.plan).status(); !fits.ok()) return FailedCheckpoint(fits);
  if (const int status = MakeIndexOfSets(*loaded.plan); status != kExitSuccess) return status;
  std::optional<TemporaryFolder> temporary;
  if (arguments.has("--run-dir")) {
    options.run_dir = *arguments.value("--run-dir");
    if (absl::Status fresh = CheckNew(options.run_dir); !fresh.ok())
      return UsageError(Printable(std::string(fresh.message())));
  } else {
    absl::StatusOr<TemporaryFolder> made = TemporaryFolder::Make("plan-evaluate");
    if (!made.ok()) return UsageError(std::string(made.status().message()) + "; give --run-dir");
    temporary.emplace(*std::move(made));
    options.run_dir = temporary->path() + "/run";
  }
  if (absl::Status fits = CheckRun(*loaded.plan, options); !fits.ok()) return UsageError(std::string(fits.message()));
  // What ranks print goes to stderr: the result is the command's output.
  const absl::StatusOr<Outcome> outcome = RunHere({*loaded.plan}, options, PrintingTerminal(true));
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  if (outcome->exit_code != kExitSuccess) return ReportRun(*outcome, temporary ? "" : options.run_dir, as_json);
  const absl::StatusOr<EvaluationRecord> record = ResultOf(options.run_dir);
  if (!record.ok()) return UsageError(Printable(std::string(record.status().message())));
  return PrintResult(*record, *named, as_json);
}

}  // namespace

CliCommand EvaluateCommand() {
  return {"evaluate",
          "evaluates the weights of a checkpoint on the evaluation sets of a recipe",
          "CHECKPOINT RECIPE [OVERRIDE ...] [--device cpu|cuda] [--run-dir DIR] [--json]",
          {{"--device", "", "cpu|cuda",
            "where ranks compute; default: cuda if the recipe's cluster has GPUs. Rank N takes GPU N"},
           {"--run-dir", "", "DIR", "keep plan, logs and metrics of this run there"},
           {"--executor", "", "FILE", "the executor program; default: the one beside `plan`"},
           {"--json", "", "", "print the losses for scripts"}},
          "CHECKPOINT is a checkpoint, or a run directory, which means its newest one. RECIPE has the model of the\n"
          "checkpoint; its layout and its precision may be others. Its ranks run on this machine, load weights alone,\n"
          "and evaluate once. Nothing is trained, and nothing is written to the run of the checkpoint.\n",
          Evaluate,
          "dr+"};
}

}  // namespace planwright
