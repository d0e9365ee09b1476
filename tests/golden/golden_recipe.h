// Recipes for the layouts, pipelines and schedules of the reference's values: what `plan show RECIPE --json` says of them is compared.
#pragma once

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/compile.h"
#include "planner/diagnostics/render.h"
#include "planner/diagnostics/source_texts.h"
#include "planner/recipe/recipe_reader.h"

namespace planwright::testing {

struct GoldenModule {
  std::string name;
  int first_rank = 0, ranks = 1, tp = 1, cp = 1, pp = 1, ep = 1, expert_tp = 1;
  std::string extra;  // more of `parallel`: ", first_stage_layers: 2"
};

struct GoldenRecipe {
  std::vector<GoldenModule> modules;  // the last one is the language model
  int world = 1;
  int64_t microbatches = 4, micro_samples = 1, language_lanes = 1;
  std::string pattern = "ME*EME*EME*E";
  std::string budget;  // everything in `budget`; empty: a short one

  // Widths that every layout of the reference divides.
  std::string Text() const {
    std::string text =
        "name: golden\nmodels:\n"
        "  vit: {kind: radio_vit, layers: 12, hidden: 64, heads: 16, ffn: 128, patch: 4, class_tokens: 2, max_image: 64, projector: {hidden: 64}}\n"
        "  lm:\n    kind: hybrid_lm\n    pattern: \"" + pattern + "\"\n    hidden: 64\n    vocabulary: 1024\n"
        "    attention: {heads: 16, head_dim: 8, kv_groups: 8}\n    mamba: {heads: 16, head_dim: 8, groups: 8, state: 8, conv: 4, chunk: 8}\n"
        "    moe: {experts: 128, top_k: 2, ffn: 32, shared_ffn: 32}\n"
        "cluster: {nodes: 1, gpus_per_node: " + std::to_string(world) + ", gpu: none}\nmodules:\n";
    for (const GoldenModule& m : modules) {
      text += "  " + m.name + ":\n    model: " + (&m == &modules.back() ? "lm" : "vit") + "\n    placement: {first_rank: " +
              std::to_string(m.first_rank) + ", ranks: " + std::to_string(m.ranks) + "}\n    parallel: {tp: " + std::to_string(m.tp) +
              ", cp: " + std::to_string(m.cp) + ", pp: " + std::to_string(m.pp) + ", ep: " + std::to_string(m.ep) +
              ", expert_tp: " + std::to_string(m.expert_tp) + m.extra + "}\n";
    }
    if (modules.size() > 1) text += "bridges:\n";
    for (size_t i = 0; i + 1 < modules.size(); ++i) {
      text += "  - {from: " + modules[i].name + ", to: " + modules.back().name +
              (modules.size() > 2 ? ", token: " + std::to_string(1023 - i) : "") + "}\n";
    }
    const int64_t global = microbatches * micro_samples * language_lanes;
    text += "batch: {global_samples: " + std::to_string(global) + ", micro_samples: " + std::to_string(micro_samples) + ", sequence_length: 64}\n";
    text += "budget: " + (budget.empty() ? "{train_samples: " + std::to_string(2 * global) + ", learning_rate: {peak: 1.0e-3}}" : budget) + "\n";
    return text + "precision: {params: fp32}\ndata: {kind: mock, image_token: 1023, image_grids: [[2, 2]]}\n";
  }
};

// What became of a recipe: its plan, or the kinds of its problems ("GridDoesNotFit").
struct Outcome {
  std::optional<Plan> plan;
  std::vector<std::string> errors;
  std::string text;

  bool not_built() const { return std::find(errors.begin(), errors.end(), "NotBuiltYet") != errors.end(); }
};

inline Outcome CompileGolden(const GoldenRecipe& recipe) {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test->test_suite_name()) + "_" + test->name();
  for (char& c : name) c = c == '/' ? '_' : c;
  const std::string path = ::testing::TempDir() + name + ".yaml";
  std::ofstream(path) << recipe.Text();
  Outcome outcome;
  Diagnostics problems;
  const std::optional<Recipe> read = ReadRecipe(path, {}, problems);
  if (read) outcome.plan = CompileRecipe(*read, problems);
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.severity == Severity::kError) outcome.errors.emplace_back(KindName(problem.kind));
  }
  SourceTexts texts;
  outcome.text = RenderText(problems.sorted(), texts, false);
  std::remove(path.c_str());
  return outcome;
}

// FNV-1a 64 over ranks joined by "," and groups joined by ";", as the golden file has it.
inline std::string Fnv(const nlohmann::json& groups) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&](const std::string& text) {
    for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  };
  for (size_t g = 0; g < groups.size(); ++g) {
    if (g > 0) add(";");
    for (size_t r = 0; r < groups[g].size(); ++r) add((r > 0 ? "," : "") + std::to_string(groups[g][r].get<int>()));
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace planwright::testing
