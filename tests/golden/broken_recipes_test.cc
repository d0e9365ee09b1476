// Broken recipes as people write them, each in a folder of tests/golden/broken with the exact output of `plan
// validate`, and recipes with lints but without errors in tests/golden/lints. FOLDER stands for the absolute path of
// the recipe's folder. A folder may have overrides in overrides.txt, one on each line. UPDATE_GOLDENS=1 writes the
// output as it is now; read the difference before you commit it.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "planner/base/text/text.h"
#include "planner/compile/advise.h"
#include "planner/compile/compile.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(InSource()) / "tests/golden";

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::vector<std::string> Overrides() {
  std::vector<std::string> overrides;
  std::ifstream in("overrides.txt");
  for (std::string line; std::getline(in, line);) overrides.push_back(line);
  return overrides;
}

// The rendered problems of the recipe in the current folder, from reading it to verifying its plan.
struct Outcome {
  bool compiled = false;
  std::string text;
};

Outcome ProblemsHere(const std::vector<std::string>& overrides) {
  Outcome outcome;
  Diagnostics problems;
  if (const std::optional<Recipe> recipe = ReadRecipe("recipe.yaml", overrides, problems)) {
    outcome.compiled = CompileWithAdvice(*recipe, problems).has_value();
  }
  SourceTexts texts;
  AddOverrides(overrides, texts);
  // Some messages name the recipe's folder, which is elsewhere in every checkout.
  outcome.text = absl::StrReplaceAll(RenderText(problems.sorted(), texts, /*color=*/false),
                                     {{fs::current_path().string(), "FOLDER"}});
  return outcome;
}

// "broken/01_misspelled_key"
std::vector<std::string> Cases(const std::string& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kGolden / folder))
    names.push_back(folder + "/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenRecipe : public testing::TestWithParam<std::string> {};

TEST_P(GoldenRecipe, SaysWhatIsWrong) {
  const fs::path folder = kGolden / GetParam();
  fs::current_path(folder);  // so that messages have the path "recipe.yaml" in every build folder
  const Outcome outcome = ProblemsHere(Overrides());
  ASSERT_NE(outcome.text, "") << "nothing is wrong with the recipe";
  ASSERT_EQ(outcome.compiled, GetParam().starts_with("lints/")) << outcome.text;
  if (std::getenv("UPDATE_GOLDENS") != nullptr) {
    std::ofstream(folder / "expected.txt", std::ios::binary) << outcome.text;
    return;
  }
  EXPECT_EQ(outcome.text, ReadAll(folder / "expected.txt"));
}

// What makes a problem the same one after an edit: numbers in its text may be others.
std::string IdentityOf(const Diagnostic& problem) {
  std::string text = problem.message;
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return Cat(KindNumber(problem.kind), ":", problem.where.line, ":", problem.where.column, ": ", text);
}

std::multiset<std::string> IdentitiesOf(const Diagnostics& problems) {
  std::multiset<std::string> all;
  for (const Diagnostic& problem : problems.as_found()) all.insert(IdentityOf(problem));
  return all;
}

class GoldenHelp : public testing::TestWithParam<std::string> {};

// Each suggestion of a case is applied to its recipe: it ends its problem, and brings no other. Applied together, they
// leave only what no suggestion was made for.
TEST_P(GoldenHelp, WorksWhenItIsPasted) {
  fs::current_path(kGolden / GetParam());
  Diagnostics found, told, ignored;
  const std::optional<YamlNode> tree = ReadRecipeTree("recipe.yaml", Overrides(), ignored);
  if (!tree) return;
  const auto compile = [](const YamlNode& changed, Diagnostics& problems) {
    CompileRecipe(RecipeOfTree(changed, problems), problems);
  };
  compile(*tree, found);
  const Recipe recipe = RecipeOfTree(*tree, told);
  CompileWithAdvice(recipe, told);
  YamlNode mended = *tree;
  size_t open = 0;
  for (const Diagnostic& problem : told.as_found()) {
    if (problem.edits.empty()) {
      ++open;
      continue;
    }
    YamlNode changed = *tree;
    ApplyEdits(problem.edits, changed);
    ApplyEdits(problem.edits, mended);
    Diagnostics left;
    compile(changed, left);
    // Only the errors: what was made from a valid recipe may have warnings that nobody could see before.
    for (const Diagnostic& other : left.as_found()) {
      if (other.severity != Severity::kError) continue;
      EXPECT_TRUE(IdentitiesOf(found).contains(IdentityOf(other))) << problem.message << " -> " << other.message;
    }
    EXPECT_FALSE(IdentitiesOf(left).contains(IdentityOf(problem))) << problem.message;
  }
  // One stage has no first and last one: of the two suggestions of this case either is enough of a change.
  if (open > 0 || told.empty() || GetParam() == "broken/51_stages_that_lose_layers") return;
  Diagnostics left;
  compile(mended, left);
  EXPECT_FALSE(left.has_errors()) << left.as_found()[0].message;
}

std::string TestName(const testing::TestParamInfo<std::string>& info) {
  return info.param.substr(info.param.find('/') + 1);
}

INSTANTIATE_TEST_SUITE_P(Broken, GoldenRecipe, testing::ValuesIn(Cases("broken")), TestName);
INSTANTIATE_TEST_SUITE_P(Lints, GoldenRecipe, testing::ValuesIn(Cases("lints")), TestName);
INSTANTIATE_TEST_SUITE_P(Broken, GoldenHelp, testing::ValuesIn(Cases("broken")), TestName);
INSTANTIATE_TEST_SUITE_P(Lints, GoldenHelp, testing::ValuesIn(Cases("lints")), TestName);

// Numbers of the kinds in a golden text: "PW0407".
std::set<std::string> NumbersIn(const std::string& text) {
  std::set<std::string> numbers;
  for (DiagnosticKind kind : AllKinds()) {
    if (text.find(Cat(" [", KindNumber(kind), " ")) != std::string::npos) numbers.emplace(KindNumber(kind));
  }
  return numbers;
}

class GoldenLint : public testing::TestWithParam<std::string> {};

TEST_P(GoldenLint, CanBeSilencedOrMadeAnError) {
  const fs::path folder = kGolden / GetParam();
  fs::current_path(folder);
  const auto with = [](const std::set<std::string>& numbers, const char* level) {
    std::vector<std::string> overrides = Overrides();
    for (const std::string& number : numbers) overrides.push_back(Cat("lints.", number, "=", level));
    return ProblemsHere(overrides);
  };
  const std::set<std::string> numbers = NumbersIn(ReadAll(folder / "expected.txt"));
  ASSERT_FALSE(numbers.empty());
  const Outcome silent = with(numbers, "off"), strict = with(numbers, "error");
  EXPECT_TRUE(silent.compiled);
  EXPECT_EQ(silent.text, "");
  EXPECT_FALSE(strict.compiled);
  EXPECT_EQ(NumbersIn(strict.text), numbers) << strict.text;
  EXPECT_EQ(strict.text.find(": warning: "), std::string::npos) << strict.text;
}

INSTANTIATE_TEST_SUITE_P(Lints, GoldenLint, testing::ValuesIn(Cases("lints")), TestName);

// Kinds without a golden recipe, each with the reason and the test that covers it.
const std::map<std::string, std::string> kWithoutGolden = {
    {"PlanUnreadable", "of compiled plans: cli_test"},
    {"BrokenRule", "a fault of the planner, or a plan that was changed: verify_test"},
    {"RepeatedModule", "YAML has repeated keys first, and files merge: place_modules_test"},
    {"FilesDoNotFit", "compiling opens no weights: before_ranks_test"},
    {"BridgeCircle", "bridges lead from encoders to the language module: pipeline_graph_test"},
};

TEST(GoldenRecipes, ShowEveryKind) {
  std::string all;
  for (const std::string folder : {"broken", "lints"}) {
    for (const std::string& name : Cases(folder)) all += ReadAll(kGolden / name / "expected.txt");
  }
  for (DiagnosticKind kind : AllKinds()) {
    const std::string name(KindName(kind));
    const bool shown = all.find(Cat(" [", KindNumber(kind), " ", name, "]\n")) != std::string::npos;
    EXPECT_NE(shown, kWithoutGolden.contains(name))
        << name << (shown ? " has a golden recipe now" : ": add a recipe that gives it to tests/golden");
  }
}

}  // namespace
}  // namespace planwright
