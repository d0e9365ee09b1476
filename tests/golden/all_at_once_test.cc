// All mistakes at once: a value that is broken is told once, hides nothing that does not need it, and makes no problem
// of something else. Every value of the recipes of slips/ is broken in turn.
#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// With an evaluation, whose best checkpoint stays.
YamlNode TreeOf(const std::string& name) {
  Diagnostics problems;
  YamlNode tree = ReadRecipeTree(InSource("tests/golden/slips/" + name + ".yaml"), {}, problems).value();
  const YamlNode* step = NodeAt(tree, "batch.global_samples");
  ApplyEdits(std::vector<Edit>{{"evaluation.every_samples", step->text},
                               {"evaluation.sets", "[{name: held_out, samples: 16, seed: 7}]"},
                               {"checkpoint", "{every_steps: 1, keep_last: 2, keep_best: held_out}"}},
             tree);
  return tree;
}

std::vector<Diagnostic> ProblemsOf(YamlNode tree, const std::vector<Edit>& edits) {
  ApplyEdits(edits, tree);
  Diagnostics problems;
  CompileRecipe(RecipeOfTree(std::move(tree), problems), problems);
  return problems.as_found();
}

// The paths of all values, maps and lists with what is in them.
void AddPaths(const YamlNode& node, const std::string& path, std::vector<std::string>& paths) {
  if (!path.empty()) paths.push_back(path);
  for (const YamlEntry& entry : node.entries) AddPaths(entry.value, InsidePath(path, entry.key), paths);
  for (size_t i = 0; i < node.items.size(); ++i) AddPaths(node.items[i], path + "[" + std::to_string(i) + "]", paths);
}

std::vector<std::string> PathsOf(const YamlNode& tree) {
  std::vector<std::string> paths;
  AddPaths(tree, "", paths);
  // Of a list of numbers the list is the value.
  std::erase_if(paths, [](const std::string& path) {
    return path.starts_with("data.image_grids[") || path.starts_with("optimizer.betas[") || path.starts_with("lints");
  });
  return paths;
}

// A value that no key of this one can have.
Edit Broken(const YamlNode& tree, const std::string& path) {
  return {path, NodeAt(tree, path)->is_scalar() ? "{oops: 1}" : "oops"};
}

std::string TextOf(const std::vector<Diagnostic>& problems) {
  std::string text;
  for (const Diagnostic& problem : problems)
    text += std::string(KindName(problem.kind)) + ": " + problem.message + "\n";
  return text;
}

TEST(AllAtOnce, ABrokenValueIsToldOnceAndNothingElse) {
  for (const std::string name : {"apart", "text", "together"}) {
    const YamlNode tree = TreeOf(name);
    for (const std::string& path : PathsOf(tree)) {
      const std::vector<Diagnostic> problems = ProblemsOf(tree, {Broken(tree, path)});
      EXPECT_EQ(problems.size(), 1u) << name << " " << path << "\n" << TextOf(problems);
    }
  }
}

TEST(AllAtOnce, AMissingValueIsToldAtMostOnce) {
  for (const std::string name : {"apart", "text", "together"}) {
    const YamlNode tree = TreeOf(name);
    for (const std::string& path : PathsOf(tree)) {
      const std::vector<Diagnostic> problems = ProblemsOf(tree, {{path, ""}});
      const auto missing = std::count_if(problems.begin(), problems.end(), [](const Diagnostic& problem) {
        return problem.kind == DiagnosticKind::kMissingKey;
      });
      EXPECT_LE(missing, 1) << name << " " << path << "\n" << TextOf(problems);
      EXPECT_TRUE(missing == 0 || problems.size() == 1) << name << " " << path << "\n" << TextOf(problems);
    }
  }
}

// A mistake, and the values that its check needs.
struct Mistake {
  Edit edit;
  DiagnosticKind kind;
  std::vector<std::string> needs;
};

const std::vector<std::string> kLanguageLanes = {
    "batch.global_samples",   "batch.micro_samples",        "models.lm.kind",
    "modules.language.model", "modules.language.placement", "modules.language.parallel"};

const Mistake kMistakes[] = {
    {{"budget.learning_rate.min", "3.0e-3"}, DiagnosticKind::kLearningRateRange, {"budget.learning_rate.peak"}},
    {{"budget.weight_decay", "{start: 0.2, end: 0.1, style: linear}"}, DiagnosticKind::kWeightDecayRange, {}},
    {{"optimizer.eps", "1.0e8"}, DiagnosticKind::kImplausibleValue, {}},
    {{"optimizer.epsilom", "1.0e-8"}, DiagnosticKind::kUnknownKey, {}},
    {{"optimizer.parts", "[{match: lanugage, learning_rate: 1.0e-4}]"},
     DiagnosticKind::kUnknownReference,
     {"models", "modules"}},
    {{"optimizer.parts", "[{match: language, learning_rate: 1.0e-4}, {match: language, learning_rate: 1.0e-5}]"},
     DiagnosticKind::kConflictingKeys,
     {"models.lm", "modules.language"}},
    {{"bridges[0].to", "lanugage"}, DiagnosticKind::kUnknownBridgeModule, {"modules"}},
    {{"batch.global_samples", "100"}, DiagnosticKind::kBatchDoesNotDivide, kLanguageLanes},
    {{"data.image_grids", "[[32, 33]]"},
     DiagnosticKind::kImageGrid,
     {"data.kind", "models.vit.kind", "models.vit.patch", "models.vit.max_image", "modules.vision.model",
      "models.lm.kind", "modules.language.model"}},
    {{"data.image_token", "70000"},
     DiagnosticKind::kTokenOutsideVocabulary,
     {"data.kind", "data.image_grids", "models.lm.vocabulary", "models.lm.kind", "modules.language.model",
      "models.vit.kind", "modules.vision.model", "bridges"}},
    {{"modules.language.placement.first_rank", "4"},
     DiagnosticKind::kPlacementsOverlap,
     {"modules.vision.placement", "modules.language.placement.ranks"}},
    {{"models.lm.moe.top_k", "64"},
     DiagnosticKind::kModelShape,
     {"models.lm.moe.experts", "models.lm.pattern", "models.lm.kind", "modules.language.model"}},
    {{"modules.language.parallel.ep", "5"},
     DiagnosticKind::kExpertGridDoesNotFit,
     {"modules.language.placement.ranks"}},
    {{"checkpoint", "{keep_last: 2}"}, DiagnosticKind::kConflictingKeys, {}},
};

// Whether one of the paths is the other, or inside of it.
bool Touch(const std::string& a, const std::string& b) {
  const std::string &in = a.size() > b.size() ? a : b, &of = a.size() > b.size() ? b : a;
  return in.starts_with(of) && (in.size() == of.size() || in[of.size()] == '.' || in[of.size()] == '[');
}

TEST(AllAtOnce, ABrokenValueHidesOnlyWhatNeedsIt) {
  const YamlNode tree = TreeOf("apart");
  int tried = 0;
  for (const Mistake& mistake : kMistakes) {
    std::vector<std::string> needs = mistake.needs;
    needs.push_back(mistake.edit.path);
    for (const std::string& path : PathsOf(tree)) {
      if (std::any_of(needs.begin(), needs.end(), [&](const std::string& need) { return Touch(need, path); })) continue;
      const std::vector<Diagnostic> problems = ProblemsOf(tree, {Broken(tree, path), mistake.edit});
      EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                              [&](const Diagnostic& problem) { return problem.kind == mistake.kind; }))
          << mistake.edit.path << " is hidden by " << path << "\n"
          << TextOf(problems);
      ++tried;
    }
  }
  EXPECT_GT(tried, 400);
}

}  // namespace
}  // namespace planwright
