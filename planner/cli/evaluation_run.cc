#include "planner/cli/evaluation_run.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/command.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/live_bar.h"
#include "planner/cli/local_run.h"
#include "planner/cli/terminal.h"
#include "planner/plan/earlier_parts.h"
#include "planner/state/checkpoint/own_plan.h"
#include "planner/state/checkpoint/remove_checkpoint.h"
#include "planner/state/weights/base_digest.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/parts.h"
#include "planner/views/diff/diff.h"
#include "planner/views/show/show.h"
#include "planner/wire/records/evaluated_round.h"
#include "planner/wire/records/recorder_reader.h"

namespace planwright {
namespace {

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

// How far rank 0 is. None: it has not begun.
std::optional<LiveBar::Progress> ProgressOfEvaluation(const Plan& plan, const std::string& run_dir) {
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

// Without its adapters a module is what they stood on, and not what the checkpoint has.
absl::Status CheckAdaptersStay(const Plan& plan, const FoundCheckpoint& checkpoint) {
  for (const Module& module : plan.modules) {
    if (module.adapted() || !checkpoint.manifest.base.contains(module.name)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        checkpoint.folder, " has adapters of ", module.name, ", and the recipe has none: give modules.", module.name,
        ".adapter as its run has it; what the adapters stand on is evaluated with weights of its own"));
  }
  return absl::OkStatus();
}

}  // namespace

bool TellRemoved(const std::string& checkpoint) {
  if (!IsRemoved(checkpoint)) return false;
  UsageError(Printable(checkpoint) +
             " was removed while it was evaluated; a run keeps only some of its checkpoints (checkpoint.keep_last): "
             "evaluate a newer one");
  return true;
}

int FailedWeights(const absl::Status& status, const std::string& checkpoint) {
  if (!checkpoint.empty() && TellRemoved(checkpoint)) return kExitUsage;
  UsageError(PrintableLines(std::string(status.message())));
  return absl::IsDataLoss(status) ? kExitDamaged : kExitUsage;
}

std::vector<std::string> OverridesOfWeights(const FoundCheckpoint& checkpoint, const RecipeWords& recipe) {
  std::error_code error;
  const auto absolute = [&](const std::string& path) {
    return JsonText(nlohmann::json(std::filesystem::absolute(path, error).lexically_normal().string()));
  };
  const std::string trained = absolute(checkpoint.folder);
  // Maps are merged, so the recipe's own goes first.
  const std::string whole = "initialize={from: " + trained + ", optimizer: false, schedule: recipe}";
  if (checkpoint.manifest.base.empty()) return {"initialize=none", whole};
  // Problems are told where the recipe is loaded with these.
  const LoadedPlan plain = LoadPlan(recipe.path, recipe.overrides);
  const absl::StatusOr<std::vector<PartSource>> sources =
      plain.plan ? SourcesOfParts(*plain.plan) : std::vector<PartSource>();
  if (!sources.ok() || sources->empty()) return {"initialize=none", whole};
  std::vector<std::string> parts;
  for (const PartSource& source : *sources) {
    const WeightPart& part = source.part;
    const bool learned = part.adapter || !checkpoint.manifest.base.contains(part.module->name) ||
                         (part.projection && part.module->trains_projection);
    const std::string from = learned ? trained : source.path.empty() ? kDrawn : absolute(source.path);
    parts.push_back(absl::StrCat("{for: ", JsonText(nlohmann::json(part.name)), ", from: ", from, "}"));
  }
  return {"initialize=none", absl::StrCat("initialize={sources: [", absl::StrJoin(parts, ", "), "]}")};
}

absl::Status CheckWeights(const Plan& plan, const FoundCheckpoint* checkpoint) {
  if (checkpoint != nullptr) ABSL_RETURN_IF_ERROR(CheckAdaptersStay(plan, *checkpoint));
  const WeightsFit fit = FitWeights(plan);
  ABSL_RETURN_IF_ERROR(fit.status());
  if (checkpoint == nullptr) return CheckBaseOfAdapters(plan, fit);
  ABSL_ASSIGN_OR_RETURN(const auto base, BaseDigests(plan, fit));
  const std::string other = OtherBase(plan, checkpoint->manifest.base, base, checkpoint->folder);
  return other.empty() ? absl::OkStatus() : absl::InvalidArgumentError(other);
}

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

absl::Status CheckNew(const std::string& run_dir) {
  std::error_code error;
  if (!std::filesystem::exists(run_dir, error) || std::filesystem::is_empty(run_dir, error)) return absl::OkStatus();
  return absl::AlreadyExistsError(run_dir + " is not empty; choose another --run-dir, or leave it out");
}

absl::StatusOr<Outcome> RunEvaluation(const Plan& plan, RunOptions options) {
  options.steps = 0;
  LiveBar bar([&] { return ProgressOfEvaluation(plan, options.run_dir); });
  return RunHere({plan}, options, [&, print = PrintingTerminal(true)](bool is_error, std::string_view line) {
    bar.Aside([&] { print(is_error, line); });
  });
}

}  // namespace planwright
