// Random recipes (random_recipe.h). Each compiles, or is refused by a kind of diagnostic that tells the author what to
// change. BrokenRule means a fault of the planner: no recipe may lead to it.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/folders.h"
#include "tests/support/random_recipe.h"

namespace planwright {
namespace {

using testing::RandomRecipe;

TEST(RandomRecipes, NeverReachAFaultOfThePlanner) {
  std::map<std::string, int> outcomes;
  for (unsigned seed = 0; seed < 250; ++seed) {
    RandomRecipe random(seed);
    const std::vector<std::string> overrides = random.Overrides();
    Diagnostics problems;
    const auto recipe = ReadRecipe(InSource(random.File()), overrides, problems);
    const bool compiled = recipe && CompileRecipe(*recipe, problems).has_value();
    ++outcomes[compiled ? "compiled" : "refused"];
    for (const Diagnostic& problem : problems.sorted()) {
      if (problem.severity == Severity::kError) ++outcomes[std::string(KindName(problem.kind))];
      if (problem.kind != DiagnosticKind::kBrokenRule) continue;
      std::string all;
      for (const std::string& word : overrides) all += " '" + word + "'";
      ADD_FAILURE() << seed << ": " << problem.message << "\nplan validate " << random.File() << all;
      break;
    }
  }
  for (const auto& [outcome, count] : outcomes) RecordProperty(outcome, count);
  EXPECT_GE(outcomes["compiled"], 150) << "most recipes are meant to fit";
}

}  // namespace
}  // namespace planwright
