#include "planner/recipe/diagnostics/explanation.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "planner/recipe/diagnostics/explanations/explanations.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

TEST(Kinds, NumbersAndNamesAreDistinctAndFound) {
  std::set<std::string_view> numbers, names;
  for (DiagnosticKind kind : AllKinds()) {
    EXPECT_TRUE(numbers.insert(KindNumber(kind)).second) << KindNumber(kind);
    EXPECT_TRUE(names.insert(KindName(kind)).second) << KindName(kind);
    EXPECT_EQ(FindKind(KindNumber(kind)), kind);
    EXPECT_EQ(FindKind(KindName(kind)), kind);
  }
  EXPECT_FALSE(FindKind("PW9999"));
  EXPECT_TRUE(IsLint(DiagnosticKind::kDecayEndsEarly));
  EXPECT_FALSE(IsLint(DiagnosticKind::kGridDoesNotFit));
}

TEST(Lints, AreWarningsUnlessTheRecipeSaysOtherwise) {
  Diagnostics problems;
  const Location asked{std::make_shared<const std::string>("r.yaml"), 3, 1};
  problems.SetLevel(DiagnosticKind::kIdleGpus, LintLevel::kOff, asked);
  problems.SetLevel(DiagnosticKind::kFewMicrobatches, LintLevel::kError, asked);
  problems.Warning(DiagnosticKind::kIdleGpus, {}, "m").notes.push_back({{}, "n"});
  EXPECT_TRUE(problems.empty());
  problems.Warning(DiagnosticKind::kDecayEndsEarly, {}, "m");
  EXPECT_FALSE(problems.has_errors());
  problems.Warning(DiagnosticKind::kFewMicrobatches, {}, "m");
  ASSERT_TRUE(problems.has_errors());
  ASSERT_EQ(problems.sorted().size(), 2u);
  EXPECT_EQ(problems.sorted()[1].notes.at(0).where.line, 3);
}

TEST(Explanations, EveryKindHasOne) {
  for (DiagnosticKind kind : AllKinds()) {
    const Explanation& explanation = ExplanationOf(kind);
    EXPECT_FALSE(explanation.meaning.empty()) << KindName(kind);
    EXPECT_FALSE(explanation.mend.empty()) << KindName(kind);
    EXPECT_EQ(explanation.wrong.empty(), explanation.right.empty()) << KindName(kind);
    const std::string text = ExplanationText(kind);
    EXPECT_EQ(text.find('\xe2'), std::string::npos) << "a terminal would obey it: " << KindName(kind);
    if (IsLint(kind)) {
      EXPECT_NE(text.find("`lints: {" + std::string(KindNumber(kind)) + ": error}`"), std::string::npos) << text;
    }
  }
}

// A second explanation of a kind would never be shown.
TEST(Explanations, NoKindHasTwo) {
  std::set<DiagnosticKind> explained;
  for (const auto& explanations :
       {FileExplanations(), RecipeExplanations(), TopologyExplanations(), BridgeExplanations(), BudgetExplanations(),
        ModelExplanations(), DataExplanations(), PlanExplanations()}) {
    for (const Explanation& explanation : explanations) {
      EXPECT_TRUE(explained.insert(explanation.kind).second) << KindNumber(explanation.kind);
    }
  }
}

TEST(Explanations, AreWrappedForATerminal) {
  EXPECT_EQ(ExplanationText(DiagnosticKind::kUnknownChoice),
            "PW0106 UnknownChoice: a word is not one of those that its key accepts\n"
            "\n"
            "The key accepts only certain words, and the value is not one of them.\n"
            "\n"
            "Wrong:\n"
            "\n"
            "    extends: [nemotron_moe_vlm_20l_mock_8r.yaml]\n"
            "    precision: {params: fp16}\n"
            "\n"
            "Right:\n"
            "\n"
            "    extends: [nemotron_moe_vlm_20l_mock_8r.yaml]\n"
            "    precision: {params: bf16}\n"
            "\n"
            "Use one of the words in the message.\n");
}

TEST(DiagnosticsPage, IsInStepWithTheTable) {
  const std::string path = InSource("docs/diagnostics.md");
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << DiagnosticsPage();
  std::ifstream in(path, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(written == DiagnosticsPage())
      << "docs/diagnostics.md: write it again with `plan explain --markdown > docs/diagnostics.md`";
}

}  // namespace
}  // namespace planwright
