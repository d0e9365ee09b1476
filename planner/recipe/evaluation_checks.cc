// The checks of `evaluation`, and of what `checkpoint` keeps because of it.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/source_rules.h"
#include "planner/recipe/recipe_checks.h"

namespace planwright {
namespace {

void CheckSetNames(const EvaluationRecipe& evaluation, Diagnostics& problems) {
  std::map<std::string, Location> seen;
  for (const EvaluationSetRecipe& set : evaluation.sets) {
    if (!AllKnown(set.name)) continue;
    if (!IsSourceName(*set.name)) {
      problems.Error(DiagnosticKind::kBadName, set.name.where,
                     Cat(Quoted(*set.name), " is not a valid name of an evaluation set"),
                     "use at most 64 letters, digits, `_`, `-` and `.`, and do not start with `.`");
    }
    const auto [first, added] = seen.try_emplace(*set.name, set.name.where);
    if (added) continue;
    problems
        .Error(DiagnosticKind::kConflictingKeys, set.name.where, Cat("two evaluation sets have the name ", *set.name),
               "rename one of the two")
        .notes.push_back({first->second, "the other one is here"});
  }
}

// A set is of the kind of `data`: it has all of its settings, and says itself which samples it has.
void CheckSetData(const Recipe& recipe, const EvaluationSetRecipe& set, Diagnostics& problems) {
  const DataRecipe& data = recipe.data;
  const std::map<std::string_view, Location> given = [&] {
    std::map<std::string_view, Location> keys;
    if (!set.sources.empty()) keys["sources"] = set.sources.front().where;
    if (set.path) keys["path"] = set.path->where;
    if (set.seed) keys["seed"] = set.seed->where;
    return keys;
  }();
  const Location& kind_at = data.kind.where.known() ? data.kind.where : data.where;
  const std::string_view kind = DataKindName(*data.kind);
  for (const DataKindRow& row : DataKinds()) {
    const auto found = given.find(row.set.key);
    if (*data.kind == row.kind && found == given.end()) {
      // One that is there and wrong is told.
      if (recipe.damaged.contains(Cat("evaluation.sets[].", row.set.key))) continue;
      problems
          .Error(DiagnosticKind::kMissingKey, set.where,
                 Cat("an evaluation set of data of kind ", kind, " needs `", row.set.key, "`: ", row.set.what,
                     " that no step is trained on"),
                 Cat("add ", row.set.example))
          .notes.push_back({kind_at, Cat("the data is of kind ", kind, " here")});
    } else if (*data.kind != row.kind && found != given.end()) {
      problems
          .Error(DiagnosticKind::kConflictingKeys, found->second,
                 Cat("`", row.set.key, "` is of data of kind ", row.word, ", but `data.kind` is ", kind),
                 Cat("remove ", row.set.key, ": evaluation sets are of the same kind as the data"))
          .notes.push_back({kind_at, "the kind of the data is this"});
    }
  }
}

// Only sources end, and an index counts what they have.
void CheckAllSamples(const Recipe& recipe, const EvaluationSetRecipe& set, Diagnostics& problems) {
  if (!AllKnown(set.samples) || set.samples->text != "all" || RowOf(*recipe.data.kind).indexed) return;
  const Location& kind_at = recipe.data.kind.where.known() ? recipe.data.kind.where : recipe.data.where;
  problems
      .Error(DiagnosticKind::kConflictingKeys, set.samples.where,
             "`samples: all` is of data of kind sources, whose index counts the samples of a set",
             "write how many samples are read, such as samples: 64")
      .notes.push_back({kind_at, Cat("the data is of kind ", DataKindName(*recipe.data.kind), " here")});
}

// What `every_samples` must be a multiple of: a step, or the steps between two checkpoints if the best one stays.
int64_t EvaluationUnit(const Recipe& recipe) {
  const int64_t step = *recipe.batch.global_samples;
  const CheckpointRecipe& checkpoint = recipe.checkpoint;
  if (!checkpoint.keep_best || !checkpoint.every_steps || !AllKnown(*checkpoint.every_steps)) return step;
  const int64_t steps = **checkpoint.every_steps;
  return steps >= 1 && steps <= kMostSamples / step ? step * steps : step;
}

void CheckEverySamples(const Recipe& recipe, const EvaluationRecipe& evaluation, Diagnostics& problems) {
  const Located<int64_t>&every = evaluation.every_samples, &global = recipe.batch.global_samples;
  if (!AllKnown(every, global) || *global < 1 || *every % *global == 0) return;
  const int64_t unit = EvaluationUnit(recipe), below = *every / unit * unit, above = below + unit;
  Diagnostic& problem =
      problems.Error(DiagnosticKind::kEvaluationBetweenSteps, every.where,
                     Cat("`every_samples` ", *every, " is no multiple of global_samples ", *global,
                         ": an evaluation stands between two steps"),
                     below > 0 ? Cat("use ", below, " or ", above) : Cat("use ", unit, " or a multiple"));
  problem.notes.push_back({global.where, Cat("global_samples is ", *global, " here")});
  problem.edits = {{"", Cat(below > 0 && *every - below <= above - *every ? below : above)}};
}

void CheckKeepBest(const Recipe& recipe, Diagnostics& problems) {
  const CheckpointRecipe& checkpoint = recipe.checkpoint;
  if (!checkpoint.keep_best) return;
  const Located<std::string>& best = *checkpoint.keep_best;
  if (!AllKnown(best, checkpoint.every_steps, checkpoint.keep_last)) return;
  if (!recipe.evaluation) {
    if (recipe.damaged.contains("evaluation")) return;
    problems.Error(DiagnosticKind::kConflictingKeys, best.where,
                   "`checkpoint.keep_best` has no effect without `evaluation`: no loss says which one is best",
                   "add evaluation, or remove keep_best");
    return;
  }
  // That there are no sets is told.
  bool all_known = !recipe.damaged.contains("evaluation.sets") && !recipe.evaluation->sets.empty();
  std::vector<std::string> names;
  for (const EvaluationSetRecipe& set : recipe.evaluation->sets) {
    all_known = all_known && AllKnown(set.name);
    names.push_back(*set.name);
  }
  if (all_known && std::find(names.begin(), names.end(), *best) == names.end()) {
    Diagnostic& problem =
        problems.Error(DiagnosticKind::kUnknownReference, best.where, Cat("there is no evaluation set ", Quoted(*best)),
                       NearNameHelp(*best, names, Cat("the sets are ", absl::StrJoin(names, ", "))));
    if (const std::optional<std::string> near = NearName(*best, names))
      problem.edits = {{"", *near}}, problem.restates = true;
  }
  if (!checkpoint.every_steps) {
    problems.Error(DiagnosticKind::kConflictingKeys, best.where,
                   "`checkpoint.keep_best` has no effect without `checkpoint.every_steps`: no checkpoint is written",
                   "add every_steps: steps between checkpoints, with one at each evaluation");
    return;
  }
  if (!checkpoint.keep_last) {
    problems.Error(DiagnosticKind::kConflictingKeys, best.where,
                   "`keep_best` without `keep_last` has no effect: all checkpoints stay",
                   "add keep_last: how many of the newest stay besides, or remove keep_best");
  }
  const Located<int64_t>&every = recipe.evaluation->every_samples, &global = recipe.batch.global_samples;
  if (!AllKnown(every, global) || *global < 1 || *every % *global != 0) return;
  const int64_t steps = *every / *global;
  if (steps % **checkpoint.every_steps == 0) return;
  Diagnostic& problem =
      problems.Error(DiagnosticKind::kConflictingKeys, best.where,
                     Cat("`checkpoint.keep_best` needs a checkpoint at each evaluation: there is an evaluation every ",
                         steps, steps == 1 ? " step" : " steps", ", but a checkpoint every ", **checkpoint.every_steps),
                     Cat("use checkpoint.every_steps: ", steps, " or a divisor of it"));
  problem.notes.push_back({every.where, Cat(*every, " samples are ", steps, steps == 1 ? " step" : " steps")});
  problem.edits = {{"checkpoint.every_steps", Cat(steps)}};
}

}  // namespace

void CheckEvaluationSettings(const Recipe& recipe, Diagnostics& problems) {
  CheckKeepBest(recipe, problems);
  if (!recipe.evaluation) return;
  const EvaluationRecipe& evaluation = *recipe.evaluation;
  if (evaluation.sets.empty() && !recipe.damaged.contains("evaluation.sets")) {
    problems.Error(DiagnosticKind::kMissingKey, evaluation.where, "`evaluation.sets` is empty",
                   "add at least one, such as {name: held_out, samples: 16, seed: 7} of mock data");
  }
  if (evaluation.sets.size() > kMostEvaluationSets) {
    problems.Error(
        DiagnosticKind::kTooLarge, evaluation.sets[kMostEvaluationSets].where,
        Cat("there are ", evaluation.sets.size(), " evaluation sets, but the limit is ", kMostEvaluationSets),
        "use fewer sets, or one with several sources: each has a loss of its own, too");
  }
  CheckSetNames(evaluation, problems);
  CheckEverySamples(recipe, evaluation, problems);
  // A wrong kind is reported; what a set needs is not known then.
  if (!AllKnown(recipe.data.kind)) return;
  for (const EvaluationSetRecipe& set : evaluation.sets) {
    if (set.where.known()) CheckSetData(recipe, set, problems), CheckAllSamples(recipe, set, problems);
  }
}

}  // namespace planwright
