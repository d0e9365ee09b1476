#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/fix_recipe.h"
#include "planner/cli/load_plan.h"
#include "planner/data/samples/count_samples.h"
#include "planner/plan/plan_json.h"
#include "planner/plan/ranks_text.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/format/line_diff.h"
#include "planner/recipe/format/replace_recipe.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string GridText(const Grid& grid) {
  std::string text = "tp" + std::to_string(grid.tp) + " dp" + std::to_string(grid.dp);
  for (auto [name, size] :
       {std::pair("cp", grid.cp), {"pp", grid.pp}, {"ep", grid.ep}, {"expert_tp", grid.expert_tp}}) {
    if (size > 1) text += std::string(" ") + name + std::to_string(size);
  }
  return text;
}

std::string BudgetText(const Budget& budget) {
  std::string text =
      "budget         " + WithCommas(budget.steps) + " steps of " + WithCommas(budget.global_samples) + " samples";
  if (budget.samples_past_budget > 0) {
    text += "; the last one passes the budget of " + WithCommas(budget.train_samples) + " by " +
            WithCommas(budget.samples_past_budget);
  }
  text += "\nlearning rate  ";
  for (const Segment& segment : budget.segments) {
    text += segment.kind + " [" + WithCommas(segment.first_sample) + ", " + WithCommas(segment.end_sample) + ")  ";
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

// How often the run reads all samples of a source.
struct SourceEpochs {
  std::string source;
  double epochs = 0;
};

// Of each source, as its index counts; none without an index.
std::vector<SourceEpochs> EpochsOf(const Plan& plan) {
  const std::optional<std::vector<int64_t>> epoch = EpochAtHand(plan.data, plan.budget.sequence_length);
  if (!epoch) return {};
  const std::vector<int64_t> of_run = SamplesOfSources(plan.data, plan.budget.steps * plan.budget.global_samples);
  std::vector<SourceEpochs> epochs;
  for (size_t i = 0; i < of_run.size(); ++i)
    epochs.push_back({plan.data.sources[i].name, static_cast<double>(of_run[i]) / static_cast<double>((*epoch)[i])});
  return epochs;
}

std::string EpochsText(const Plan& plan) {
  constexpr size_t kMostListed = 4;
  std::vector<SourceEpochs> epochs = EpochsOf(plan);
  if (epochs.empty()) return "";
  const auto one = [](const SourceEpochs& of) {
    return absl::StrFormat("%.3g epochs of %s", of.epochs, Printable(of.source));
  };
  std::vector<std::string> parts;
  if (epochs.size() <= kMostListed) {
    for (const SourceEpochs& of : epochs) parts.push_back(one(of));
  } else {
    const auto [least, most] = std::minmax_element(
        epochs.begin(), epochs.end(), [](const SourceEpochs& a, const SourceEpochs& b) { return a.epochs < b.epochs; });
    parts = {Counted(static_cast<int64_t>(epochs.size()), "source"), "least " + one(*least), "most " + one(*most)};
  }
  return absl::StrCat("data           ", absl::StrJoin(parts, ", "), "\n");
}

std::string SummaryText(const Plan& plan, size_t bytes, double seconds) {
  std::string text = plan.name + " is valid\n";
  Table modules({"module", "ranks", "grid", "parameters"});
  for (const Module& module : plan.modules) {
    modules.Add({module.name, RanksText(module.grid.first_rank, module.grid.ranks()), GridText(module.grid),
                 WithCommas(module.parameter_count + module.projector_count)});
  }
  char tail[160];
  std::snprintf(tail, sizeof tail, "plan           %s, %zu roles, %zu blocks, %s bytes, %.2f s\n",
                plan.digest.substr(0, 12).c_str(), plan.roles.size(), plan.blocks.size(),
                WithCommas(static_cast<int64_t>(bytes)).c_str(), seconds);
  return text + modules.Text() + BudgetText(plan.budget) + EpochsText(plan) + tail;
}

Json SummaryJson(const Plan& plan, size_t bytes, double seconds) {
  Json epochs;  // null: there is no index
  for (const SourceEpochs& of : EpochsOf(plan)) epochs[of.source] = of.epochs;
  return {{"name", plan.name},
          {"digest", plan.digest},
          {"world_size", plan.world_size},
          {"steps", plan.budget.steps},
          {"samples_past_budget", plan.budget.samples_past_budget},
          {"epochs", std::move(epochs)},
          {"plan_bytes", bytes},
          {"seconds", seconds}};
}

// Writes the recipe with what the edits of its problems change. `diff`: gets it, empty if nothing is changed. `left`:
// gets the errors that stay.
absl::Status Fix(const RecipeWords& words, std::string& diff, std::vector<LeftError>& left) {
  if (words.path.ends_with(".json"))
    return absl::InvalidArgumentError("--fix changes a recipe, and " + words.path + " is a compiled plan");
  std::vector<std::string> absent;
  const LoadedPlan loaded = LoadComparedPlan(words.path, words.overrides, absent);
  if (!loaded.problems.has_errors() || loaded.exit_status() == kExitUsage) return absl::OkStatus();
  const absl::StatusOr<FixedText> fixed = FixRecipe(words.path, words.overrides, loaded.problems.sorted());
  if (!fixed.ok()) return fixed.status();
  left = fixed->left;
  if (fixed->before == fixed->after) return absl::OkStatus();
  diff = DiffToRead(LineDiff(fixed->before, fixed->after), fixed->before);
  return ReplaceRecipe(words.path, fixed->before, fixed->after);
}

struct ValidateOptions : CommandOptions {
  bool fix = false;
};

int Validate(const ValidateOptions& options) {
  const absl::StatusOr<RecipeWords> words = SplitWords(options, {});
  if (!words.ok()) return UsageError(words.status());
  std::string diff;
  std::vector<LeftError> left;
  if (options.fix) {
    if (const absl::Status status = Fix(*words, diff, left); !status.ok()) return UsageError(status);
  }
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> absent;
  LoadedPlan loaded = LoadComparedPlan(words->path, words->overrides, absent);
  TellWhyLeft(left, loaded.problems);
  const size_t bytes = loaded.plan ? WritePlan(*loaded.plan).size() : 0;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) {
    Json json = ValidityJson(loaded);
    if (options.fix) json["fixed"] = {{"changed", !diff.empty()}, {"diff", diff}};
    if (loaded.plan) json["summary"] = SummaryJson(*loaded.plan, bytes, seconds);
    std::cout << JsonText(json, 2) << "\n";
  } else {
    if (!diff.empty()) std::cout << "fixed " << Printable(words->path) << ":\n" << PrintableLines(diff) << std::flush;
    loaded.PrintProblems();
    for (const std::string& path : absent)
      std::cerr << Printable("note: " + path + " is not on this machine, so it was not compared with the plan") << "\n";
    if (loaded.plan) TellOfDamagedAtHand(*loaded.plan);
    if (loaded.plan) std::cout << SummaryText(*loaded.plan, bytes, seconds);
  }
  return loaded.plan ? static_cast<int>(kExitSuccess) : loaded.exit_status();
}

}  // namespace

CliCommand ValidateCommand() {
  CliCommand command = {"validate", "reports every problem of a recipe at once; needs no GPU", Runs(Validate), "r+"};
  command.usage = "RECIPE [OVERRIDE ...] [--fix] [--json]";
  command.options = {
      {"--fix", &ValidateOptions::fix, "write in the right words what the recipe says, and print what changed"},
      JsonOption("print {\"valid\", \"problems\"} for scripts, and with --fix {\"fixed\"}"),
  };
  command.details =
      "The recipe is compiled and the plan is proved. RECIPE may be a compiled plan, which is then proved again. "
      "Weights\n"
      "and recorded batches that are on this machine are compared with the plan.\n\n"
      "--fix writes in the right words what the file RECIPE says: words of other programs, slips of names and of\n"
      "numbers. It chooses no number and drops nothing that was said, and leaves files that RECIPE extends, and\n"
      "overrides. Comments stay, and the file gets its form, as by plan fmt. What is left is told, with the reason,\n"
      "and the exit status is that of the result.\n";
  command.examples = {
      {"plan validate recipes/nemotron_moe_vlm_20l_mock_8r.yaml", "checks a recipe"},
      {"plan validate recipes/nemotron_moe_vlm_20l_mock_8r.yaml batch.global_samples=64", "with another batch"},
  };
  command.see_also = {"explain", "fmt", "compile"}, command.pages = {"docs/diagnostics.md", "docs/recipe_reference.md"};
  return command;
}

}  // namespace planwright
