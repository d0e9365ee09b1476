// The checks of `optimizer.parts` that need no model. Which parameters a part has is known in compile/model.
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/recipe_checks.h"

namespace planwright {
namespace {

void CheckPart(const Recipe& recipe, const RatePartRecipe& part, Diagnostics& problems) {
  if (!part.learning_rate && !part.weight_decay && part.where.known()) {
    problems.Error(DiagnosticKind::kMissingKey, part.where,
                   Cat("a part without rates", AllKnown(part.match) ? Cat(": ", Quoted(*part.match)) : ""),
                   "add `learning_rate` or `weight_decay`, or remove the part");
  }
  if (part.learning_rate && part.weight_decay && AllKnown(part.learning_rate, part.weight_decay) &&
      **part.learning_rate == 0 && **part.weight_decay > 0) {
    problems
        .Warning(DiagnosticKind::kKeyWithoutEffect, part.weight_decay->where,
                 "`weight_decay` of this part has no effect: a step decays by learning rate times weight decay, and "
                 "the learning rate is 0",
                 "remove weight_decay, or give the part a learning rate above 0")
        .notes.push_back({part.learning_rate->where, "the learning rate is here"});
  }
  const Located<double>& peak = recipe.budget.learning_rate.peak;
  if (!part.learning_rate || !AllKnown(part.learning_rate, peak) || *peak != 0 || **part.learning_rate == 0) return;
  problems
      .Error(DiagnosticKind::kConflictingKeys, part.learning_rate->where,
             "the learning rate of a part follows that of `budget`, whose peak is 0",
             "give budget.learning_rate a peak above 0, or freeze what is not to be trained: modules.NAME.train")
      .notes.push_back({peak.where, "the peak is here"});
}

}  // namespace

void CheckRatePartSettings(const Recipe& recipe, Diagnostics& problems) {
  for (const RatePartRecipe& part : recipe.rate_parts) CheckPart(recipe, part, problems);
  if (recipe.rate_parts.size() <= kMostRateParts) return;
  problems.Error(DiagnosticKind::kTooLarge, recipe.rate_parts[kMostRateParts].match.where,
                 Cat("there are ", recipe.rate_parts.size(), " parts of rates, but the limit is ", kMostRateParts),
                 "let one part match more: * in `match` is any text");
}

}  // namespace planwright
