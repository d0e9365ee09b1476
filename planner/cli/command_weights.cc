// `plan weights`: whether the weights that a recipe begins with fit its model, and who reads what (docs/weights.md).

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/progress_bar.h"
#include "planner/cli/terminal.h"
#include "planner/cli/weights_text.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// Reads all values, and says how far it is.
WeightValues ReadValues(const Plan& plan, WeightsFit& fit) {
  ProgressBar bar;
  const auto progress = [&](int64_t done, int64_t all) {
    if (all > 0) bar.Show(static_cast<double>(done) / static_cast<double>(all), "of " + BytesText(all));
  };
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  return ReadAllValues(plan, fit, static_cast<int>(threads), progress);
}

int Weights(const Arguments& arguments) {
  const absl::StatusOr<RecipeWords> words = SplitWords(arguments, {});
  if (!words.ok()) return UsageError(std::string(words.status().message()));
  const bool as_json = arguments.has("--json");
  const LoadedPlan loaded = LoadPlan(words->path, words->overrides);
  loaded.PrintProblems(as_json);
  if (!loaded.plan) return loaded.exit_status();
  CheckedWeights weights;
  weights.fit = FitWeights(*loaded.plan);
  if (weights.fit.fits()) weights.reads = ReadTable(*loaded.plan, weights.fit);
  if (arguments.has("--read") && weights.fit.fits()) {
    weights.values = ReadValues(*loaded.plan, weights.fit);
    weights.values_read = true;
  }
  if (as_json) {
    std::cout << JsonText(WeightsJson(weights), 2) << "\n";
  } else {
    std::cout << WeightsText(weights, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return weights.fits() ? kExitSuccess : kExitInvalid;
}

}  // namespace

CliCommand WeightsCommand() {
  return {"weights",
          "checks the weights that a run begins with, and says which rank reads what",
          "RECIPE [OVERRIDE ...] [--read] [--json]",
          {{"--read", "", "", "read all values too: infinity, NaN, rows of embeddings that are zero"},
           {"--json", "", "", "print the same as JSON"}},
          "Without --read only the headers of files are read. Exit status: 1 if the weights do not fit.\n",
          Weights,
          "r+"};
}

}  // namespace planwright
