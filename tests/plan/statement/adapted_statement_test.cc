// A statement with adapters keeps every rule of statements, whatever the targets are, and says what it should.
#include "planner/plan/statement/adapted_statement.h"

#include <absl/strings/match.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/plan/statement/statement_problems.h"
#include "tests/plan/statement/statement_mutants.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string AllLetters(const ModelStatement& statement) {
  std::string letters;
  for (const auto& [letter, piece] : statement.layers) letters.push_back(letter);
  return letters;
}

std::string Told(const TextProblems& problems) {
  std::string told;
  for (const TextProblem& problem : problems) told += problem.message + "\n";
  return told;
}

// The lines of a piece that begin so, in the notation of statements.
std::vector<std::string> LinesOf(const ModelStatement& statement, const std::string& piece, const std::string& word) {
  std::vector<std::string> lines;
  for (const std::string& line : testing::StatementLines(statement)) {
    if (absl::StartsWith(line, piece + ": ") && absl::StrContains(line, word)) lines.push_back(line);
  }
  return lines;
}

TEST(AdaptedStatement, KeepsAllRules) {
  for (const ModelStatement& statement : BuiltInStatements()) {
    std::vector<std::string> all;
    for (const AdapterProduct& product : AdapterProducts(statement, AllLetters(statement))) {
      if (std::find(all.begin(), all.end(), product.name) == all.end()) all.push_back(product.name);
    }
    ASSERT_FALSE(all.empty());
    for (const std::string& one : all)
      EXPECT_EQ(Told(StatementProblems(AdaptedStatement(statement, {one}))), "") << statement.kind << " " << one;
    EXPECT_EQ(Told(StatementProblems(AdaptedStatement(statement, all))), "") << statement.kind;
  }
}

TEST(AdaptedStatement, AddsASecondWayOfTwoThinProducts) {
  const ModelStatement adapted = AdaptedStatement(*StatementOf("hybrid_lm"), {"q_proj", "v_proj", "out_proj"});
  for (const std::string& line : LinesOf(adapted, "*", "lora")) std::printf("%s\n", line.c_str());
  EXPECT_EQ(LinesOf(adapted, "*", "add_linear").size(), 2U);
  EXPECT_EQ(LinesOf(adapted, "M", "add_linear").size(), 1U);
  EXPECT_TRUE(LinesOf(adapted, "E", "add_linear").empty());
}

TEST(AdaptedStatement, TargetsAreNamesOrTheirLastWords) {
  EXPECT_TRUE(IsTarget("q_proj", "self_attn.q_proj"));
  EXPECT_TRUE(IsTarget("self_attn.q_proj", "self_attn.q_proj"));
  EXPECT_FALSE(IsTarget("proj", "self_attn.q_proj"));
  EXPECT_FALSE(IsTarget("attn.q_proj", "self_attn.q_proj"));
  EXPECT_FALSE(IsTarget("layers.self_attn.q_proj", "self_attn.q_proj"));
  EXPECT_FALSE(IsTarget("", "self_attn.q_proj"));
}

TEST(AdaptedStatement, RefusesWhatIsNoDenseProductOfALayer) {
  const ModelStatement& hybrid = *StatementOf("hybrid_lm");
  EXPECT_EQ(AdapterTargetProblem(hybrid, "ME*", "in_proj"), "");
  EXPECT_EQ(AdapterTargetProblem(hybrid, "-", "up_proj"), "");
  EXPECT_THAT(AdapterTargetProblem(hybrid, "ME*", "up_proj"), HasSubstr("is of the experts"));
  EXPECT_EQ(AdapterTargetProblem(hybrid, "ME*", "shared_experts.up_proj"), "");
  EXPECT_THAT(AdapterTargetProblem(hybrid, "E", "gate"), HasSubstr("is no product of a matrix: route reads it"));
  EXPECT_THAT(AdapterTargetProblem(hybrid, "M", "conv1d"), HasSubstr("mamba_conv reads it"));
  EXPECT_THAT(AdapterTargetProblem(hybrid, "M", "lm_head"), HasSubstr("is in no layer"));
  EXPECT_THAT(AdapterTargetProblem(hybrid, "M", "q_proj"), HasSubstr("names no product of its layers"));
  EXPECT_THAT(AdapterTargetProblem(*StatementOf("radio_vit"), "V", "mlp1.1"), HasSubstr("is in no layer"));
}

TEST(AdaptedStatement, IsMadeOnceForAModule) {
  Module module;
  module.kind = "decoder";
  EXPECT_EQ(StatementOf(module), StatementOf("decoder"));
  module.adapter_targets = {"q_proj"};
  const ModelStatement* adapted = StatementOf(module);
  EXPECT_NE(adapted, StatementOf("decoder"));
  EXPECT_EQ(StatementOf(module), adapted);
  module.kind = "none";
  EXPECT_EQ(StatementOf(module), nullptr);
}

}  // namespace
}  // namespace planwright
