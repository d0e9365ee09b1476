// A recipe as a search takes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/compile/cluster_of.h"
#include "planner/data/source_files.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/tune/whole_step.h"
#include "tests/support/folders.h"

namespace planwright::testing {

// Nothing for a recipe that is not valid.
inline std::optional<TunedRecipe> ReadTuned(const std::string& file, const std::vector<std::string>& overrides) {
  TunedRecipe tuned;
  const auto recipe = ReadRecipe(InSource(file), overrides, tuned.levels);
  if (!recipe || tuned.levels.has_errors()) return std::nullopt;
  tuned.recipe = WithPreparedIds(*recipe, tuned.levels);
  tuned.cluster = ClusterOf(tuned.recipe.cluster, tuned.levels);
  return tuned;
}

}  // namespace planwright::testing
