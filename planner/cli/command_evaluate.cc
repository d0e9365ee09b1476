// `plan evaluate`: the evaluation sets of a recipe with the weights of a checkpoint, on any layout.

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "planner/checkpoint/run_lives.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/local_run.h"
#include "planner/cli/own_program.h"
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

namespace planwright {
namespace {

// As UsageError: a damaged checkpoint has a status of its own.
int FailedCheckpoint(const absl::Status& status) {
  UsageError(Printable(std::string(status.message())));
  return absl::IsDataLoss(status) ? kExitDamaged : kExitUsage;
}

// The recipe, so that its run begins with these weights, and with nothing else of the checkpoint.
LoadedPlan LoadWithWeights(const RecipeWords& words, const std::string& checkpoint) {
  std::error_code error;
  std::vector<std::string> overrides = words.overrides;
  overrides.push_back("initialize.from=" + std::filesystem::absolute(checkpoint, error).lexically_normal().string());
  overrides.emplace_back("initialize.optimizer=false");
  overrides.emplace_back("initialize.schedule=recipe");
  return LoadPlan(words.path, overrides);
}

absl::StatusOr<EvaluationRecord> ResultOf(const std::string& run_dir) {
  absl::StatusOr<LineFile> file = LineFile::Open(StepsPath(run_dir));
  if (!file.ok()) return file.status();
  absl::StatusOr<std::optional<EvaluationRecord>> found = FindEvaluation(*file, 0);
  if (!found.ok()) return found.status();
  if (!*found) return absl::NotFoundError(file->path() + " has no evaluation");
  return **std::move(found);
}

std::string ResultText(const EvaluationRecord& record, size_t width) {
  Table table({"set", "source", "loss", "tokens"});
  const auto add = [&](const std::string& set, const std::string& source, const MeanLoss& mean) {
    table.Add({Printable(set), Printable(source), mean.loss ? absl::StrFormat("%.9g", *mean.loss) : "-",
               WithCommas(mean.tokens)});
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
  std::cout.flush();
  return std::cout ? kExitSuccess : kExitStorage;
}

// Makes a folder for the run that goes when the command ends; empty with --run-dir, which stays.
absl::StatusOr<std::string> TemporaryFolder(const Arguments& arguments) {
  if (arguments.has("--run-dir")) return "";
  std::error_code error;
  std::string folder = std::filesystem::temp_directory_path(error).string() + "/plan-evaluate-XXXXXX";
  if (error || mkdtemp(folder.data()) == nullptr)
    return absl::ResourceExhaustedError("cannot make a folder for the run; give --run-dir");
  return folder;
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
  if (const int status = MakeIndexOfSets(*loaded.plan); status != kExitSuccess) return status;
  const absl::StatusOr<std::string> temporary = TemporaryFolder(arguments);
  if (!temporary.ok()) return UsageError(std::string(temporary.status().message()));
  const absl::Cleanup remove = [&] {
    std::error_code error;
    if (!temporary->empty()) std::filesystem::remove_all(*temporary, error);
  };
  options.run_dir = temporary->empty() ? *arguments.value("--run-dir") : *temporary + "/run";
  if (absl::Status fits = CheckRun(*loaded.plan, options); !fits.ok()) return UsageError(std::string(fits.message()));
  // What ranks print goes to stderr: the result is the command's output.
  const absl::StatusOr<Outcome> outcome = RunHere({*loaded.plan}, options, PrintingTerminal(true));
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  if (outcome->exit_code != kExitSuccess) return ReportRun(*outcome, options.run_dir, as_json);
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
