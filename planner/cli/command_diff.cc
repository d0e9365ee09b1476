#include <unistd.h>

#include <iostream>

#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/diff/diff.h"
#include "planner/run_files/exit_status.h"
#include "planner/show/show.h"

namespace planwright {
namespace {

// One of the two recipes or plans. Overrides follow the recipe that they change.
struct ComparedPlan {
  std::string path;
  std::vector<std::string> overrides;

  std::string title() const {
    std::string text = path;
    for (const std::string& override : overrides) text += " " + override;
    return text;
  }
};

absl::StatusOr<std::vector<ComparedPlan>> PlansOf(const Arguments& arguments) {
  std::vector<ComparedPlan> sides;
  for (const std::string& word : arguments.words) {
    if (word.find('=') == std::string::npos) {
      sides.push_back({word, {}});
    } else if (sides.empty()) {
      return absl::InvalidArgumentError("override `" + word +
                                        "` comes before the first recipe; put it behind the recipe that it changes");
    } else {
      sides.back().overrides.push_back(word);
    }
  }
  if (sides.size() != 2)
    return absl::InvalidArgumentError("`plan diff` needs two recipes or plans; found " + std::to_string(sides.size()));
  return sides;
}

int Diff(const Arguments& arguments) {
  const absl::StatusOr<std::vector<ComparedPlan>> sides = PlansOf(arguments);
  if (!sides.ok()) return UsageError(std::string(sides.status().message()));
  const bool as_json = arguments.has("--json");
  std::vector<LoadedPlan> loaded;
  for (const ComparedPlan& side : *sides) {
    loaded.push_back(LoadPlan(side.path, side.overrides));
    loaded.back().PrintProblems(as_json);
  }
  if (!loaded[0].plan || !loaded[1].plan) return kExitUsage;  // not kExitInvalid: for `diff`, 1 means "they differ"
  const PlanDiff diff = DiffPlans(*loaded[0].plan, *loaded[1].plan);
  if (as_json) {
    std::cout << DiffJson(diff).dump(2) << "\n";
  } else {
    std::cout << DiffText(diff, (*sides)[0].title(), (*sides)[1].title(), LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return diff.same() ? kExitSuccess : kExitInvalid;
}

}  // namespace

CliCommand DiffCommand() {
  return {
      "diff",
      "compares two plans, and tells whether the loss curve may change",
      "A [OVERRIDE ...] B [OVERRIDE ...] [--json]",
      {{"--json", "", "", "print {\"same\", \"may_change_loss\", \"changes\"} for scripts"}},
      "A and B are recipes or compiled plans. Exit status: 0 the same plan, 1 they differ, 2 one of them is invalid.\n"
      "Layout, placement, buckets and recompute never change the loss curve. Weights, samples, learning rates and\n"
      "arithmetic do.\n",
      Diff,
      "rr+"};
}

}  // namespace planwright
