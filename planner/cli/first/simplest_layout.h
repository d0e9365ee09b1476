// The layout of a first recipe: of those that are as fast as the fastest, as far as predicted times are known, the one
// that splits the least (docs/tune.md#a-first-recipe).
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"
#include "planner/search/results/tuned_text.h"
#include "planner/search/tune.h"

namespace planwright {

// One search, as LayoutSearch::Run.
using RunSearch = std::function<absl::StatusOr<Found>(const TuneRequest& request, Diagnostics& diagnostics)>;

struct SimplestFound {
  Found found;      // of the search that was chosen; of the widest one, if none has a layout
  std::string why;  // a line on the choice; empty: there was none
};

// Searches again and again, each time with more keys open than before: first for ranks that each have whole models,
// then with experts apart, with layers run again, with tensors split, and last with every key that `plan tune` changes.
// Chooses the first of these whose layout is within the error of predictions of the fastest of all. `recipe`: of
// `request`, with its overrides. `request.seconds`: of all searches together, by its clock; none begins after it.
// `stopped`: asked between two of them; then what was found is chosen from. Errors of `run`.
absl::StatusOr<SimplestFound> FindSimplestLayout(const RunSearch& run, const std::function<bool()>& stopped,
                                                 const Recipe& recipe, const TuneRequest& request,
                                                 Diagnostics& diagnostics);

}  // namespace planwright
