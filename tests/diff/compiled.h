// Plans of recipes with overrides, for tests that compare them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/compile.h"
#include "planner/diagnostics/render.h"
#include "planner/diagnostics/source_texts.h"
#include "planner/recipe/recipe_reader.h"

namespace planwright::testing {

inline constexpr char kTiny[] = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_tiny.yaml";
inline constexpr char kToy[] = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml";
inline constexpr char kIcons[] = PLANWRIGHT_SOURCE_DIR "/recipes/icons_8r_toy.yaml";

// An empty plan, and a failure of the test, if the recipe is not valid.
inline Plan Compiled(const std::string& recipe, const std::vector<std::string>& overrides = {}) {
  Diagnostics problems;
  const std::optional<Recipe> read = ReadRecipe(recipe, overrides, problems);
  std::optional<Plan> plan = read ? CompileRecipe(*read, problems) : std::nullopt;
  if (!plan) {
    SourceTexts texts;
    ADD_FAILURE() << recipe << " " << (overrides.empty() ? "" : overrides[0]) << ": " << RenderText(problems.sorted(), texts, false);
    return {};
  }
  return *std::move(plan);
}

// As Compiled; nothing if the layout is not lowered yet.
inline std::optional<Plan> CompiledIfBuilt(const std::string& recipe, const std::vector<std::string>& overrides) {
  Diagnostics problems;
  const std::optional<Recipe> read = ReadRecipe(recipe, overrides, problems);
  std::optional<Plan> plan = read ? CompileRecipe(*read, problems) : std::nullopt;
  if (plan) return plan;
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.kind == DiagnosticKind::kNotBuiltYet) return std::nullopt;
  }
  return Compiled(recipe, overrides);  // tells what is wrong
}

// Layouts of the tiny recipe that are planned but do not run yet: stages, context parallel, experts cut over ranks, recompute.
inline std::vector<std::vector<std::string>> PlannedLayouts() {
  const std::string language = "modules.language.", apart = language + "placement.first_rank=1";
  return {{apart, language + "placement.ranks=2", language + "parallel.pp=2"},
          {apart, language + "placement.ranks=8", language + "parallel.pp=2", language + "parallel.tp=2", language + "parallel.ep=2"},
          {apart, language + "placement.ranks=2", language + "parallel.cp=2"},
          {apart, language + "placement.ranks=4", language + "parallel.expert_tp=2", language + "parallel.ep=2"},
          {language + "recompute=full"},
          {"modules.radio_encoder.recompute=block", language + "recompute=[moe, mamba]"},
          {"gradients.overlap_reduce=true", "gradients.overlap_gather=true", "gradients.buckets=2"}};
}

}  // namespace planwright::testing
