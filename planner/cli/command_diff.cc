#include <unistd.h>

#include <iostream>

#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/checkpoint_folders.h"
#include "planner/cli/command.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/terminal.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/state/checkpoint/shard_files.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "planner/views/diff/diff.h"
#include "planner/views/diff/plan_figures.h"
#include "planner/views/diff/resume_diff.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

// One of the two: a recipe, a plan, or a checkpoint, which has the plan that wrote it. Overrides follow the recipe that
// they change.
struct ComparedPlan {
  std::string path;
  std::vector<std::string> overrides;
  std::string checkpoint;  // its folder; empty: it is none

  std::string title() const {
    std::string text = checkpoint.empty() ? path : checkpoint;
    for (const std::string& override : overrides) text += " " + override;
    return Printable(text);
  }
  std::string file() const { return checkpoint.empty() ? path : checkpoint + "/" + kCheckpointPlanFile; }
  LoadedPlan Load() const { return LoadPlan(file(), overrides); }
};

absl::StatusOr<std::vector<ComparedPlan>> PlansOf(const std::vector<std::string>& words) {
  std::vector<ComparedPlan> sides;
  for (const std::string& word : words) {
    if (word.find('=') == std::string::npos) {
      sides.push_back({word, {}});
    } else if (sides.empty()) {
      return absl::InvalidArgumentError("override `" + word +
                                        "` comes before the first recipe; put it behind the recipe that it changes");
    } else {
      sides.back().overrides.push_back(word);
    }
  }
  if (sides.size() != 2) {
    return absl::InvalidArgumentError("`plan diff` needs two recipes, plans or checkpoints; found " +
                                      std::to_string(sides.size()));
  }
  for (ComparedPlan& side : sides) {
    if (!IsFolder(side.path)) continue;
    if (!side.overrides.empty()) {
      return absl::InvalidArgumentError("overrides such as `" + side.overrides[0] + "` need a recipe, and " +
                                        side.path + " is a folder");
    }
    ABSL_ASSIGN_OR_RETURN(NamedCheckpoint named, FindCheckpoint(side.path));
    side.checkpoint = std::move(named.checkpoint.folder);
  }
  return sides;
}

// What it would change to go on from the checkpoint `from`. The plan that wrote it may be of an older release, which
// this one cannot read: then the rest is compared all the same.
int DiffFromCheckpoint(const ComparedPlan& from, const ComparedPlan& to, const Plan& plan, bool as_json) {
  const auto checkpoint = CheckpointReader::Open(from.checkpoint);
  if (!checkpoint.ok()) return UsageError(Printable(std::string(checkpoint.status().message())));
  const Manifest& manifest = (*checkpoint)->manifest();
  const std::string path = from.checkpoint + "/" + kCheckpointPlanFile;
  const absl::StatusOr<std::string> text = ReadProvedFile(path, manifest.plan_bytes, manifest.plan_sha256);
  if (!text.ok()) return UsageError(Printable(path + ": " + std::string(text.status().message())));
  const LoadedPlan wrote = from.Load();
  if (!wrote.plan) wrote.PrintProblems();
  const ResumeDiff diff = DiffResume(**checkpoint, wrote.plan ? &*wrote.plan : nullptr, plan);
  if (as_json) {
    std::cout << JsonText(ResumeDiffJson(diff), 2) << "\n";
  } else {
    std::cout << ResumeDiffText(diff, from.title(), to.title(), LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return diff.same() ? kExitSuccess : kExitInvalid;
}

int Diff(const CommandOptions& options) {
  const absl::StatusOr<std::vector<ComparedPlan>> sides = PlansOf(options.words);
  if (!sides.ok()) return UsageError(Printable(std::string(sides.status().message())));
  const ComparedPlan &from = (*sides)[0], &to = (*sides)[1];
  // kExitUsage and not kExitInvalid where a plan is not valid: for `diff`, 1 means "they differ".
  if (!from.checkpoint.empty()) {
    const LoadedPlan loaded = to.Load();
    loaded.PrintProblems(options.json);
    return loaded.plan ? DiffFromCheckpoint(from, to, *loaded.plan, options.json) : kExitUsage;
  }
  std::vector<LoadedPlan> loaded;
  loaded.reserve(sides->size());
  for (const ComparedPlan& side : *sides) {
    loaded.push_back(LoadTimedPlan(side.file(), side.overrides));
    loaded.back().PrintProblems(options.json);
  }
  if (!loaded[0].plan || !loaded[1].plan) return kExitUsage;
  const TimedPlan timed[] = {{*loaded[0].plan, *loaded[0].time}, {*loaded[1].plan, *loaded[1].time}};
  const PlanDiff diff = DiffPlans(*loaded[0].plan, *loaded[1].plan);
  if (options.json) {
    nlohmann::ordered_json json = DiffJson(diff);
    json["figures"] = FiguresJson(timed[0], timed[1]);
    std::cout << JsonText(json, 2) << "\n";
  } else {
    const size_t width = LineWidth(STDOUT_FILENO, kShowWidth);
    std::cout << DiffText(diff, from.title(), to.title(), width);
    if (!diff.same()) std::cout << "\n" << FiguresText(timed[0], timed[1], width);
  }
  return diff.same() ? kExitSuccess : kExitInvalid;
}

}  // namespace

CliCommand DiffCommand() {
  CliCommand command = {"diff",
                        "compares two plans, or a checkpoint and a plan, and tells whether the loss curve may change",
                        Runs(Diff), "rr+"};
  command.usage = "A [OVERRIDE ...] B [OVERRIDE ...] [--json]";
  command.options = {
      JsonOption("print {\"same\", \"may_change_loss\", \"changes\"} for scripts; of a checkpoint, \"resume\" too"),
  };
  command.details =
      "A and B are recipes, compiled plans, checkpoints, or run directories, which mean their newest checkpoint. If A "
      "is\n"
      "a checkpoint: what it would change to go on from it with B, and whether a launch would refuse that. Exit "
      "status:\n"
      "0 the same plan, 1 they differ, 2 one of them is invalid.\n"
      "Layout, placement, buckets and recompute never change the loss curve. Weights, samples, learning rates and\n"
      "arithmetic do.\n";
  command.examples = {
      {"plan diff recipes/nemotron_moe_vlm_tiny.yaml recipes/nemotron_moe_vlm_tiny.yaml "
       "modules.language.recompute=full",
       "whether recompute changes the loss curve"}};
  command.see_also = {"compile", "launch"}, command.pages = {"docs/checkpoints.md"};
  return command;
}

}  // namespace planwright
