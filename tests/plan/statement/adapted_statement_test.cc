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
  // A product that is cut along its inputs: both ways are terms.
  EXPECT_THAT(LinesOf(adapted, "M", "out_proj_lora"),
              ElementsAre("M: weight mixer_out_proj_lora_A mixer.out_proj.lora_A.weight [adapter.rank, inner] cut 1 "
                          "uniform [0 - 1 / sqrt(adapter.mamba.mixer_out_proj.inputs), 1 / "
                          "sqrt(adapter.mamba.mixer_out_proj.inputs)] in language_model.",
                          "M: weight mixer_out_proj_lora_B mixer.out_proj.lora_B.weight [hidden, adapter.rank] zeros "
                          "in language_model.",
                          "M: mixer_out_proj_low = linear yn [mixer_out_proj_lora_A]",
                          "M: o = add_linear o_base mixer_out_proj_low [mixer_out_proj_lora_B] width (hidden) scale "
                          "adapter.alpha / adapter.rank"));
  // Of joined q, k and v, each at its own features; and where all ranks have all keys and values.
  EXPECT_THAT(LinesOf(adapted, "*", "= add_linear"),
              ElementsAre("*: when 1 - all_kv: qkv_mixer_q_proj = add_linear qkv_base mixer_q_proj_low "
                          "[mixer_q_proj_lora_B] width (q) / tp scale adapter.alpha / adapter.rank",
                          "*: when 1 - all_kv: qkv = add_linear qkv_mixer_q_proj mixer_v_proj_low "
                          "[mixer_v_proj_lora_B] width (kv) / tp first (q) / tp + (kv) / tp scale adapter.alpha / "
                          "adapter.rank",
                          "*: when all_kv: kv = add_linear kv_base mixer_v_proj_low [mixer_v_proj_lora_B] width (kv) "
                          "first (kv) scale adapter.alpha / adapter.rank",
                          "*: when all_kv: q = add_linear q_base mixer_q_proj_low [mixer_q_proj_lora_B] width (q) / tp "
                          "scale adapter.alpha / adapter.rank"));
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

TEST(AdaptedStatement, AnySpellingOfTargetsNamesTheSameProducts) {
  const ModelStatement& hybrid = *StatementOf("hybrid_lm");
  const std::vector<std::string> names = {"mixer.o_proj", "mixer.shared_experts.up_proj", "mixer.in_proj"};
  EXPECT_THAT(AdaptedNames(hybrid, "ME*", {"in_proj", "shared_experts.up_proj", "o_proj", "mixer.in_proj"}),
              ::testing::UnorderedElementsAreArray(names));
  EXPECT_THAT(AdaptedNames(hybrid, "M", {"in_proj", "o_proj"}), ElementsAre("mixer.in_proj"));
  // Of all targets of one or two words of every kind: as names they make the same statement.
  for (const ModelStatement& statement : BuiltInStatements()) {
    const std::string letters = AllLetters(statement);
    for (const AdapterProduct& one : AdapterProducts(statement, letters)) {
      for (const AdapterProduct& other : AdapterProducts(statement, letters)) {
        const std::vector<std::string> targets = {one.name.substr(one.name.rfind('.') + 1), other.name};
        const std::vector<std::string> made = AdaptedNames(statement, letters, targets);
        EXPECT_EQ(AdaptedNames(statement, letters, {other.name, targets[0]}), made);
        EXPECT_EQ(AdaptedNames(statement, letters, made), made);
        EXPECT_EQ(testing::StatementLines(AdaptedStatement(statement, made)),
                  testing::StatementLines(AdaptedStatement(statement, targets)))
            << statement.kind << " " << targets[0] << " " << targets[1];
      }
    }
  }
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
