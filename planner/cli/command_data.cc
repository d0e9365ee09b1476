// `plan data`: what is done with the data of a recipe before a run (docs/training/data.md).
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/data_index.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/diagnostics/near_name.h"
#include "planner/diagnostics/utf8.h"
#include "planner/plan/json_text.h"
#include "planner/run_files/exit_status.h"
#include "planner/show/show.h"

namespace planwright {
namespace {

int IndexData(const Plan& plan, const Arguments& arguments) {
  int64_t jobs = 0;
  if (arguments.has("--jobs")) {
    const absl::StatusOr<int64_t> number = IntegerOption("--jobs", *arguments.value("--jobs"), 1);
    if (!number.ok()) return UsageError(std::string(number.status().message()));
    jobs = std::min<int64_t>(*number, 1024);
  }
  DataIndexResult result;
  const bool has_index = plan.data.kind == "sources";
  if (has_index) {
    absl::StatusOr<DataIndexResult> made = MakeDataIndex(plan.data, static_cast<int>(jobs));
    if (!made.ok()) return ReportNoIndex(made.status());
    result = *std::move(made);
  }
  if (arguments.has("--json")) {
    std::cout << JsonText(DataIndexJson(plan.data, result), 2) << "\n";
  } else if (has_index) {
    std::cout << DataIndexText(result, LineWidth(STDOUT_FILENO, kShowWidth));
  } else {
    std::cout << "data of kind " << plan.data.kind << " has no index\n";
  }
  return kExitSuccess;
}

int Data(const Arguments& arguments) {
  if (arguments.words.empty()) return UsageError("say what to do: `plan data index`, and a recipe");
  const std::string& action = arguments.words[0];
  const std::vector<std::string> actions = {"index"};
  if (action != "index") {
    return UsageError("`plan data` cannot `" + Printable(action) + "`; " +
                      NearNameHelp(action, actions, "it can `index`"));
  }
  Arguments rest = arguments;
  rest.words.erase(rest.words.begin());
  const absl::StatusOr<RecipeWords> words = SplitWords(rest, {});
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  const LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(arguments.has("--json"));
  if (!loaded.plan) return loaded.exit_status();
  return IndexData(*loaded.plan, arguments);
}

}  // namespace

CliCommand DataCommand() {
  return {"data",
          "makes the index of the data of a recipe",
          "index RECIPE [OVERRIDE ...] [--jobs N] [--json]",
          {{"--jobs", "", "N", "shards that are read at a time; default: one for each core"},
           {"--json", "", "", "print the same as JSON"}},
          "  index  reads all shards once, and keeps where their documents are and how long; a second time only those\n"
          "         that have changed. `plan launch` does the same before it starts ranks\n\n"
          "Exit status: 1 if shards are damaged or do not fit the recipe; all mistakes are listed, with shard and\n"
          "document.\n",
          Data,
          "ar+"};
}

}  // namespace planwright
