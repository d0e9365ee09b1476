#include "planner/cli/evaluate_against.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/cli/background_output.h"
#include "planner/cli/command.h"
#include "planner/cli/evaluation_run.h"
#include "planner/cli/launch_report.h"
#include "planner/cli/load_plan.h"
#include "planner/cli/temporary_folder.h"
#include "planner/cli/terminal.h"
#include "planner/exchange/logits/compare_logits.h"
#include "planner/exchange/logits/logits_batch.h"
#include "planner/exchange/logits/logits_text.h"
#include "planner/exchange/logits/reference_logits.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/run_lives.h"
#include "planner/views/show/show.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/probe_format.h"

namespace planwright {
namespace {

constexpr std::string_view kSetName = "against";

// Why the model of a plan has no weights or no logits to compare; OK if it has both.
absl::Status CheckComparable(const Plan& plan, const std::string& recipe) {
  const auto wrong = [&](const auto&... what) { return absl::InvalidArgumentError(Cat(Printable(recipe), what...)); };
  if (!plan.initialize) {
    return wrong(
        " has no `initialize`, so its weights are drawn and nothing is loaded to compare: "
        "add initialize.from=FOLDER, or name a checkpoint before the recipe");
  }
  for (const Module& module : plan.modules) {
    if (!module.carries_loss) continue;
    for (const WeightSourcePlan& source : plan.initialize->sources) {
      if (source.part == module.name && source.from == "drawn")
        return wrong(" draws the weights of ", module.name, " (initialize.sources), so there is nothing to compare");
    }
    const bool has = std::any_of(plan.blocks.begin(), plan.blocks.end(), [&](const Block& block) {
      return block.module == module.name && std::any_of(block.probes.begin(), block.probes.end(),
                                                        [](const Probe& probe) { return probe.name == kLogitsProbe; });
    });
    if (!has) return wrong(": models of kind ", module.kind, " probe no `", kLogitsProbe, "`");
  }
  return absl::OkStatus();
}

// What makes the plan of a recipe evaluate the batch once, and nothing else: its own data need not be there. `base`: of
// the recipe as it is.
std::vector<std::string> OverridesOfBatch(const Plan& base, const ReferenceLogits& logits, const std::string& batch) {
  const std::string path = JsonText(nlohmann::json(batch));
  const std::string token = base.data.encoders.empty() ? "" : Cat(", image_token: ", base.data.image_token);
  // Maps are merged, so the recipe's own go first.
  std::vector<std::string> overrides = {
      "data=none", Cat("data={kind: recorded, path: ", JsonText(nlohmann::json(batch + ".of_training")), token, "}"),
      "evaluation=none",
      Cat("evaluation={every_samples: ", base.budget.global_samples, ", sets: [{name: ", kSetName,
          ", samples: ", logits.sequences(), ", path: ", path, "}]}")};
  // It may keep the best checkpoint of an evaluation set, which is gone. This run writes none.
  overrides.insert(overrides.end(), {"checkpoint=none", "checkpoint={}"});
  return overrides;
}

// Memory for as many rows of experts as there can be: of a few tokens most may choose the same.
std::vector<std::string> OverridesOfExperts(const Plan& base) {
  std::vector<std::string> overrides;
  for (const Module& module : base.modules) {
    if (module.imbalance > 0) overrides.push_back(Cat("models.", module.model, ".moe.imbalance=1048576"));
  }
  return overrides;
}

// The sequence lengths that fit the tokens: that of the recipe, halved as often as possible; ascending.
std::vector<int64_t> LengthsFor(const ReferenceLogits& logits, int64_t of_recipe) {
  std::vector<int64_t> lengths = {of_recipe};
  while (lengths.back() % 2 == 0 && lengths.back() / 2 >= logits.longest()) lengths.push_back(lengths.back() / 2);
  std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

// The plan with the shortest sequences that its layout can cut. A problem is one of the recipe's own length.
LoadedPlan LoadForBatch(const RecipeWords& words, const Plan& base, const ReferenceLogits& logits,
                        const std::string& batch) {
  std::vector<std::string> overrides = words.overrides;
  for (std::string& one : OverridesOfBatch(base, logits, batch)) overrides.push_back(std::move(one));
  std::vector<std::string> roomy = overrides;
  for (std::string& one : OverridesOfExperts(base)) roomy.push_back(std::move(one));
  for (const int64_t length : LengthsFor(logits, base.budget.sequence_length)) {
    std::vector<std::string> shorter = roomy;
    shorter.push_back(Cat("batch.sequence_length=", length));
    LoadedPlan loaded = LoadPlan(words.path, shorter);
    if (loaded.plan) return loaded;
  }
  return LoadPlan(words.path, overrides);
}

struct Compared {
  RecipeWords words;
  std::optional<NamedCheckpoint> named;

  std::string checkpoint() const { return named ? named->checkpoint.folder : ""; }
};

// A second word that is no override is the recipe, and then the first is a checkpoint.
absl::StatusOr<Compared> ReadWords(const Arguments& arguments) {
  Compared compared;
  Arguments of_recipe = arguments;
  const bool has_checkpoint = arguments.words.size() > 1 && arguments.words[1].find('=') == std::string::npos;
  if (has_checkpoint) of_recipe.words.erase(of_recipe.words.begin());
  absl::StatusOr<RecipeWords> words = SplitWords(of_recipe, {});
  if (!words.ok()) return words.status();
  compared.words = *std::move(words);
  if (compared.words.path.ends_with(".json")) {
    return absl::InvalidArgumentError(
        Cat(Printable(compared.words.path), " is a compiled plan, whose data is fixed; --against needs its recipe"));
  }
  if (!has_checkpoint) return compared;
  absl::StatusOr<NamedCheckpoint> named = FindCheckpoint(arguments.words[0]);
  if (!named.ok()) return named.status();
  compared.named = *std::move(named);
  for (std::string& one : OverridesOfWeights(compared.named->checkpoint, compared.words))
    compared.words.overrides.push_back(std::move(one));
  return compared;
}

int PrintComparison(const ReferenceLogits& logits, const Plan& plan, const LogitsComparison& comparison, bool as_json) {
  if (as_json) {
    std::cout << JsonText(LogitsJson(logits, plan, comparison), 2) << "\n";
  } else {
    std::cout << LogitsText(logits, plan, comparison, LineWidth(STDOUT_FILENO, kShowWidth));
  }
  return comparison.good() ? kExitSuccess : kExitInvalid;
}

// `folder`: for the batch, the logits of ours and, without --run-dir, the run.
int RunAndCompare(const EvaluateFlags& flags, const Compared& compared, const ReferenceLogits& logits, const Plan& base,
                  const std::string& folder) {
  const std::string batch = folder + "/batch.safetensors";
  LoadedPlan loaded = LoadForBatch(compared.words, base, logits, batch);
  if (!loaded.plan) {
    loaded.PrintProblems(flags.json);
    return loaded.exit_status();
  }
  const Plan& plan = *loaded.plan;
  const FoundCheckpoint* checkpoint = compared.named ? &compared.named->checkpoint : nullptr;
  if (absl::Status fits = CheckWeights(plan, checkpoint); !fits.ok()) return FailedWeights(fits, compared.checkpoint());
  if (compared.named) {
    const absl::Status same = CheckEvaluatedModel(plan, compared.named->checkpoint, flags.accept_changes);
    if (!same.ok()) return FailedWeights(same, compared.checkpoint());
  }
  RunOptions options = flags.run;
  options.steps = 0, options.probe_dir = folder + "/probe";
  if (options.run_dir.empty()) options.run_dir = folder + "/run";
  if (absl::Status fits = CheckRun(plan, options); !fits.ok()) return UsageError(fits);
  if (absl::Status written = WriteLogitsBatch(logits, plan, plan.budget.sequence_length, batch); !written.ok())
    return UsageError(Printable(std::string(written.message())));
  const absl::StatusOr<Outcome> outcome = RunEvaluation(plan, options);
  if (!outcome.ok()) return ReportFailedLaunch(outcome.status());
  const bool by_itself = outcome->exit_code != kExitSuccess && outcome->interrupted_by == 0;
  if (by_itself && compared.named && TellRemoved(compared.checkpoint())) return kExitUsage;
  if (outcome->exit_code != kExitSuccess)
    return ReportRun(*outcome, flags.run.run_dir.empty() ? "" : options.run_dir, flags.json);
  const double tolerance = flags.tolerance.value_or(LogitsTolerance(ComputedInOf(plan.dtype()), logits.computed_in()));
  const absl::StatusOr<LogitsComparison> comparison =
      CompareLogits(logits, options.probe_dir + "/values_evaluated.safetensors", tolerance);
  if (!comparison.ok()) return UsageError(Printable(std::string(comparison.status().message())));
  return PrintComparison(logits, plan, *comparison, flags.json);
}

}  // namespace

int EvaluateAgainst(const EvaluateFlags& flags) {
  const absl::StatusOr<Compared> compared = ReadWords(flags);
  if (!compared.ok()) return FailedWeights(compared.status(), "");
  const absl::StatusOr<ReferenceLogits> logits = ReferenceLogits::Open(flags.against);
  if (!logits.ok()) return UsageError(Printable(std::string(logits.status().message())));
  LoadedPlan base = LoadPlan(compared->words.path, compared->words.overrides);
  base.PrintProblems(flags.json);
  if (!base.plan) return base.exit_status();
  for (const absl::Status& problem :
       {CheckComparable(*base.plan, compared->words.path), logits->CheckFits(*base.plan)}) {
    if (!problem.ok()) return UsageError(std::string(problem.message()));
  }
  if (flags.has("--run-dir")) {
    if (absl::Status fresh = CheckNew(flags.run.run_dir); !fresh.ok())
      return UsageError(Printable(std::string(fresh.message())));
  }
  const BackgroundOutput output;  // a closed pipe ends the program only when the folder is gone
  const absl::StatusOr<TemporaryFolder> temporary = TemporaryFolder::Make("plan-evaluate");
  if (!temporary.ok()) return UsageError(temporary.status());
  return RunAndCompare(flags, *compared, *logits, *base.plan, temporary->path());
}

}  // namespace planwright
