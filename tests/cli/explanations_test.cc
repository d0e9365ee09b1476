// Checks the examples of `plan explain`: each wrong one gives its kind and no other, each right one gives nothing.
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "planner/cli/load_plan.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/diagnostics/explanation.h"
#include "planner/recipe/diagnostics/render.h"
#include "tests/support/folders.h"

namespace planwright {

static void PrintTo(DiagnosticKind kind, std::ostream* out) { *out << KindName(kind); }

namespace {

namespace fs = std::filesystem;

// Kinds without an example, each with the reason why no recipe and no command alone can give one.
const std::map<std::string, std::string> kWithoutExample = {
    {"RepeatedModule", "keys given twice are RepeatedKey, and files merge"},
    {"BridgeCircle", "BridgeDirection refuses all that could close one"},
    {"PreparedShards", "it needs shards and their prepared.json"},
    {"FilesDoNotFit", "it needs files of weights or of a batch"},
    {"BrokenRule", "the planner's own fault, or a plan that was changed with its digest"},
};

class Example : public testing::TestWithParam<DiagnosticKind> {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("explain_" + std::string(KindName(GetParam())));
    fs::remove_all(folder_);
    fs::copy(fs::path(InSource()) / "recipes", folder_, fs::copy_options::recursive);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs the example: a recipe.yaml, or a `plan validate` command.
  LoadedPlan Run(std::string_view example) const {
    const std::string text = ExampleText(example);
    if (!text.starts_with("$ ")) {
      std::ofstream(folder_ / "recipe.yaml") << text;
      return LoadPlan((folder_ / "recipe.yaml").string(), {});
    }
    std::vector<std::string> words = absl::StrSplit(text, ' ');
    EXPECT_EQ(words[1] + " " + words[2], "plan validate");
    std::ofstream(folder_ / "recipe.yaml") << ExampleText("");
    if (words[3] == "plan.json") {
      const LoadedPlan whole = LoadPlan((folder_ / "recipe.yaml").string(), {});
      std::ofstream(folder_ / "plan.json") << WritePlan(whole.plan.value());
    }
    return LoadPlan((folder_ / words[3]).string(), {words.begin() + 4, words.end()});
  }

  static std::string Said(const LoadedPlan& loaded) {
    SourceTexts texts;
    return RenderText(loaded.problems.sorted(), texts, false);
  }

  fs::path folder_;
};

TEST_P(Example, SaysWhatItShows) {
  const Explanation& explanation = ExplanationOf(GetParam());
  ASSERT_EQ(explanation.wrong.empty(), kWithoutExample.contains(std::string(KindName(GetParam()))));
  if (explanation.wrong.empty()) return;
  const LoadedPlan wrong = Run(explanation.wrong);
  EXPECT_FALSE(wrong.problems.empty()) << explanation.wrong;
  for (const Diagnostic& problem : wrong.problems.sorted()) EXPECT_EQ(problem.kind, GetParam()) << Said(wrong);
  EXPECT_EQ(wrong.plan.has_value(), IsLint(GetParam()));
  const LoadedPlan right = Run(explanation.right);
  EXPECT_EQ(Said(right), "");
  EXPECT_TRUE(right.plan.has_value());
}

TEST(BrokenRule, IsWhatAPlanGetsThatWasChangedWithItsDigest) {
  Plan plan = LoadPlan(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), {}).plan.value();
  plan.world_size += 1;  // a rank that no module has
  plan.digest = PlanDigest(plan);
  const fs::path path = fs::path(testing::TempDir()) / "broken_rule.json";
  std::ofstream(path) << WritePlan(plan);
  const LoadedPlan loaded = LoadPlan(path.string(), {});
  fs::remove(path);
  EXPECT_FALSE(loaded.plan.has_value());
  ASSERT_TRUE(loaded.problems.has_errors());
  for (const Diagnostic& problem : loaded.problems.sorted())
    EXPECT_EQ(problem.kind, DiagnosticKind::kBrokenRule) << problem.message;
}

INSTANTIATE_TEST_SUITE_P(Explain, Example, testing::ValuesIn(AllKinds().begin(), AllKinds().end()),
                         [](const auto& info) { return std::string(KindName(info.param)); });

}  // namespace
}  // namespace planwright
