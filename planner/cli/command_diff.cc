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

// Overrides stand behind the recipe that they change.
struct Side {
  std::string path;
  std::vector<std::string> overrides;

  std::string title() const {
    std::string text = path;
    for (const std::string& override : overrides) text += " " + override;
    return text;
  }
};

absl::StatusOr<std::vector<Side>> SidesOf(const Arguments& arguments) {
  std::vector<Side> sides;
  for (const std::string& word : arguments.words) {
    if (word.find('=') == std::string::npos) {
      sides.push_back({word, {}});
    } else if (sides.empty()) {
      return absl::InvalidArgumentError("override `" + word +
                                        "` comes before a recipe; it belongs behind the one that it changes");
    } else {
      sides.back().overrides.push_back(word);
    }
  }
  if (sides.size() != 2)
    return absl::InvalidArgumentError("`plan diff` compares two recipes or plans, not " + std::to_string(sides.size()));
  return sides;
}

int Diff(const Arguments& arguments) {
  const absl::StatusOr<std::vector<Side>> sides = SidesOf(arguments);
  if (!sides.ok()) return UsageError(std::string(sides.status().message()));
  const bool as_json = arguments.has("--json");
  std::vector<LoadedPlan> loaded;
  for (const Side& side : *sides) {
    loaded.push_back(LoadPlan(side.path, side.overrides));
    loaded.back().PrintProblems(as_json);
  }
  if (!loaded[0].plan || !loaded[1].plan) return kExitUsage;  // 1 says that plans differ
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
      "says what differs between two plans, and whether the loss curve may change",
      "A [OVERRIDE ...] B [OVERRIDE ...] [--json]",
      {{"--json", "", "", "print {\"same\", \"may_change_loss\", \"changes\"} for scripts"}},
      "A and B are recipes or compiled plans. Exit status: 0 the same plan, 1 they differ, 2 one of them is invalid.\n"
      "Layout, placement, buckets and recompute never change the loss curve; weights, samples, rates and arithmetic "
      "do.\n",
      Diff,
      "rr+"};
}

}  // namespace planwright
