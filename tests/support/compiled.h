// Compiles recipes for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/compile/compile.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"

namespace planwright::testing {

// The plan of a recipe. If the recipe is invalid, the test fails and the plan is empty.
inline Plan Compiled(const std::optional<Recipe>& recipe, Diagnostics problems = {}) {
  std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
  if (plan) return *std::move(plan);
  SourceTexts texts;
  ADD_FAILURE() << RenderText(problems.sorted(), texts, false);
  return {};
}

// As Compiled, of a recipe file with overrides.
inline Plan CompiledFile(const std::string& path, const std::vector<std::string>& overrides = {}) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(path, overrides, problems);
  return Compiled(recipe, problems);
}

}  // namespace planwright::testing
