// A recipe as a search takes it.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/compile/batches/source_files.h"
#include "planner/compile/cluster_of.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/search/tune.h"
#include "planner/search/whole_step.h"
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

inline const std::string kTiny = "recipes/nemotron_moe_vlm_tiny.yaml";

inline TuneRequest RequestOf(const std::string& file, std::vector<std::string> overrides,
                             std::vector<std::string> fixed) {
  Diagnostics problems;
  std::optional<YamlNode> tree = ReadRecipeTree(InSource(file), {}, problems);
  EXPECT_TRUE(tree.has_value()) << file;
  return {.recipe = tree.value_or(YamlNode()), .overrides = std::move(overrides), .fixed = std::move(fixed)};
}

inline TuneResult Tuned(const TuneRequest& request) {
  Diagnostics problems;
  const absl::StatusOr<TuneResult> result = Tune(request, problems);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : TuneResult{};
}

}  // namespace planwright::testing
