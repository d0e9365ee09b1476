// No text stops the program: it is a statement without problems, or each problem has its place.
#include "tests/plan/statement/any_statement.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"

namespace planwright::testing {
namespace {

TEST(AnyStatement, TheTextsOfThisProgramHaveNoProblem) {
  for (const KindText& kind : BuiltInKinds()) {
    const ParsedStatement parsed = ParseStatement(kind.file, kind.text);
    EXPECT_EQ(ProblemsText(parsed.problems) + ProblemsText(StatementProblems(parsed.statement)), "");
  }
  for (const std::string& text : StatementTexts()) EXPECT_TRUE(TryStatement(text));
}

// Damages the texts of this program again and again, each time a few of what came before.
void TryDamaged(int times) {
  std::mt19937 random(2026);
  int sound = 0;
  for (const std::string& text : StatementTexts()) {
    std::string damaged = text;
    for (int i = 0; i < times; ++i) {
      if (i % 4 == 0) damaged = text;
      damaged = DamagedText(damaged, random);
      sound += TryStatement(damaged);
    }
  }
  // Comments, titles and names may change; most else is seen.
  EXPECT_GT(sound, times / 50);
  EXPECT_LT(sound, times);
}

TEST(AnyStatement, DamagedTextsHaveProblemsWithPlaces) { TryDamaged(1000); }
TEST(AnyStatement, SoakDamagedTextsHaveProblemsWithPlaces) { TryDamaged(50'000); }

TEST(AnyStatement, RandomBytesHaveProblemsWithPlaces) {
  std::mt19937 random(5);
  int sound = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (size_t bytes = random() % 400; bytes > 0; --bytes) text += static_cast<char>(random() % 256);
    sound += TryStatement(text);
  }
  EXPECT_EQ(sound, 0) << "no random text has a stream";
}

// pp cuts no size, so that no size of a judged module is a multiple of it.
TEST(AnyStatement, NeedsOfAnAxisThatCutsNothingHaveAPlace) {
  for (const std::string& text : StatementTexts()) {
    const size_t need = text.find("  needs ");
    ASSERT_NE(need, text.npos);
    EXPECT_FALSE(TryStatement(absl::StrCat(text.substr(0, need), "  needs pp divides hidden\n", text.substr(need))));
  }
}

// A piece that is not there has no place: the whole text has.
TEST(AnyStatement, LacksAPiece) {
  for (std::string text : StatementTexts()) {
    const size_t begin = text.find("\npiece embed"), end = text.find("\npiece ", begin + 1);
    ASSERT_NE(begin, text.npos);
    EXPECT_FALSE(TryStatement(text.erase(begin, end - begin)));
  }
}

// What would take a long time, much memory or a deep stack, or has no end.
TEST(AnyStatement, TextsOfTheWorstKindEnd) {
  const std::string begin = "constant a int\nconstant b int\npiece M\n";
  EXPECT_FALSE(TryStatement("let a = " + std::string(60000, '(')));
  EXPECT_FALSE(TryStatement(begin + "needs a at most b\nneeds b at most 13 * a - 1\nneeds b at most a"));
  EXPECT_FALSE(TryStatement(begin + "needs a / b multiple of 1\nneeds 7 multiple of 2\nneeds a multiple of 0 - 1"));
  EXPECT_FALSE(TryStatement(begin + "weight w w [a] cut 4294967296 zeros\nweight w w [a] cut -1 zeros"));
  std::string words = begin, lines = StatementTexts().front();
  for (int i = 0; i < 7000; ++i) absl::StrAppend(&words, " unknown", i);
  for (int i = 0; i < 1200; ++i) absl::StrAppend(&lines, "y", i, " = linear unknown", i, " [unseen", i, "]\n");
  EXPECT_FALSE(TryStatement(words));
  EXPECT_FALSE(TryStatement(lines));
  std::string constants;
  for (int i = 0; i < 1900; ++i) absl::StrAppend(&constants, "constant some_long_name_", i, " int\n");
  EXPECT_FALSE(TryStatement(constants + "let a = some_long_nam_1 + some_long_nam_2\n"));
}

}  // namespace
}  // namespace planwright::testing
