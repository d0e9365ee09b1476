// Shared slots, values for each encoder and experts of several parameters: what statements must say of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"
#include "tests/plan/statement/small_modules.h"
#include "tests/plan/statement/toy_kind.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Change {
  std::string name, line, by, problem;

  friend void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }
};

ModelStatement Changed(const std::string& line, const std::string& by) {
  std::string text = testing::ToyKind();
  EXPECT_EQ(absl::StrReplaceAll({{line, by}}, &text), 1) << line;
  ParsedStatement parsed = ParseStatement("toy.model", text);
  EXPECT_EQ(ProblemsText(parsed.problems), "") << text;
  return std::move(parsed.statement);
}

class WrongToy : public ::testing::TestWithParam<Change> {};

TEST_P(WrongToy, IsRefused) {
  const auto& [name, line, by, problem] = GetParam();
  EXPECT_THAT(ProblemsText(StatementProblems(Changed(line, by))), HasSubstr(problem));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WrongToy,
    ::testing::Values(
        Change{"shared_over_stages", "  needs pp at most 1\n", "",
               "piece head: slot lm_head is embed.embeddings, and no line here needs pp at most 1, where it is"},
        Change{"shared_over_two_stages", "needs pp at most 1", "needs pp at most 2",
               "piece head: slot lm_head is embed.embeddings, and no line here needs pp at most 1, where it is"},
        Change{"no_stage_at_all", "needs pp at most 1", "needs pp at most 0", "piece head: needs pp at most 0 = 0"},
        Change{"shared_with_nothing", "= embed.embeddings", "= embed.positions",
               "piece head: slot lm_head is embed.positions, which is not there"},
        Change{"shared_and_its_own", "  shared lm_head",
               "  weight lm_head other.weight [vocabulary, hidden] cut 0 padded zeros\n  shared lm_head",
               "piece head: slot lm_head is there twice"},
        Change{"shared_twice", "  shared lm_head = embed.embeddings\n",
               "  shared lm_head = embed.embeddings\n  shared lm_foot = embed.embeddings\n",
               "piece head: embed.embeddings is shared with two slots"},
        // What cannot be cut has gradients of two kinds: the embedding's is whole, the head's a term of a sum.
        Change{"shared_and_whole", "embeddings backbone.embeddings.weight [vocabulary, hidden] cut 0 padded",
               "embeddings backbone.embeddings.weight [vocabulary, hidden]",
               "piece head: slot lm_head is embed.embeddings, which is no weight that is cut over tp"},
        Change{"shared_by_a_layer", "  weight up mixer.up_proj.weight [mlp.ffn, hidden] cut 0 normal [init_std]\n",
               "  weight up mixer.up_proj.weight [mlp.ffn, hidden] cut 0 normal [init_std]\n"
               "  shared rest = embed.embeddings\n",
               "piece -: only the head shares slots"},
        Change{"shared_where_something_trains", "  shared lm_head", "  when trains_backbone: shared lm_head",
               "piece head: slot lm_head has a condition of trains_backbone, which is no constant and no axis"},
        Change{"a_need_of_what_trains", "needs pp at most 1", "when trains_backbone: needs pp at most 1",
               "the line has a condition of trains_backbone, which is no constant of each module with this piece"},
        Change{"rows_of_one_encoder", "merge_images x bent* tokens", "merge_images x bent tokens", "reads bent"},
        Change{"counted_for_each_encoder", "  outputs x\n\n# docs/model/mamba.md",
               "  outputs x\n  counts bent*\n\n# docs",
               "piece embed: the value bent* is not always there once, and cannot be what counts rows"},
        Change{"rows_outside_of_each", "each x positions = merge_images x bent*", "x positions = merge_images x bent*",
               "piece embed: merge_images reads bent* of each encoder, and does not begin with each"},
        Change{"experts_of_other_columns", "wide_proj.weight [moe.shared_ffn, hidden]",
               "wide_proj.weight [moe.shared_ffn, moe.ffn]",
               "weight mixer.experts.{expert}.wide_proj.weight does not fit what it is joined to"},
        Change{"experts_cut_as_one", "cut 1 segments [moe.ffn, moe.shared_ffn]", "cut 1",
               "piece E: experts reads a weight in segments"},
        Change{"experts_in_another_order", "segments [moe.ffn, moe.shared_ffn]", "segments [moe.shared_ffn, moe.ffn]",
               "piece E: experts reads a weight in segments"},
        Change{"experts_of_which_some_are_whole", "wide_proj.weight [moe.shared_ffn, hidden] cut 0",
               "wide_proj.weight [moe.shared_ffn, hidden]",
               "wide_proj.weight is joined, and not cut as what it is joined to"}),
    [](const auto& info) { return info.param.name; });

// A model that is tied or not, as its recipe says.
std::string MaybeTied() {
  std::string text = testing::ToyKind();
  absl::StrReplaceAll(
      {{"  shared lm_head = embed.embeddings\n  needs pp at most 1\n",
        "  when tied: shared lm_head = embed.embeddings\n"
        "  when 1 - tied: weight lm_head lm_head.weight [vocabulary, hidden] cut 0 padded zeros\n"
        "  when tied: needs pp at most 1\n"},
       {"\nlet residual_std", "\nconstant tied flag else 0: whether the head is the embedding\nlet residual_std"}},
      &text);
  return text;
}

TEST(SharedSlots, MayHaveACondition) {
  const ParsedStatement parsed = ParseStatement("toy.model", MaybeTied());
  ASSERT_EQ(ProblemsText(parsed.problems), "");
  const ModelStatement& statement = parsed.statement;
  EXPECT_EQ(ProblemsText(StatementProblems(statement)), "");
  for (const bool tied : {false, true}) {
    Module module = testing::SmallModule(statement);
    if (tied) module.constants["tied"] = int64_t{1};
    module.parameters.clear(), module.storages.clear();
    module.parameter_count = 0;
    ExpandStatement(statement, ModelNumbers({.sequence_length = 96}, module, statement), false, module);
    const Storage& embeddings = module.storages.front();
    EXPECT_EQ(embeddings.slot, "embeddings");
    EXPECT_EQ(module.storages.back().slot, tied ? "norm" : "lm_head");
    if (!tied) {
      EXPECT_THAT(embeddings.shared, IsEmpty());
    } else {
      EXPECT_THAT(embeddings.shared, ElementsAre(SharedSlot{"language.head", "lm_head"}));
    }
  }
}

TEST(SharedSlots, ConditionsMustAgree) {
  std::string text = MaybeTied();
  absl::StrReplaceAll({{"when tied: needs pp", "when 1 - tied: needs pp"}}, &text);
  EXPECT_THAT(ProblemsText(StatementProblems(ParseStatement("toy.model", text).statement)),
              HasSubstr("no line here needs pp at most 1, where it is"));
  text = MaybeTied();
  absl::StrReplaceAll({{"when 1 - tied: weight", "when tied: weight"}}, &text);
  EXPECT_THAT(ProblemsText(StatementProblems(ParseStatement("toy.model", text).statement)),
              AllOf(HasSubstr("lm_head"), HasSubstr("piece head")));
}

}  // namespace
}  // namespace planwright
