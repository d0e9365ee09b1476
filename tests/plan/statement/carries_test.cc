// Carries: what their lines say, where they are, and statements that name them wrongly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>

#include "absl/strings/str_replace.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/prime_module.h"
#include "planner/plan/statement/rank_piece.h"
#include "planner/plan/statement/statement_problems.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TextOf(const std::string& kind) {
  for (const KindText& each : BuiltInKinds()) {
    if (each.file.ends_with("/" + kind + ".model")) return std::string(each.text);
  }
  ADD_FAILURE() << "no kind " << kind;
  return "";
}

std::string ProblemsOf(const std::string& text) { return ProblemsText(ParseStatement("f", text).problems); }

TEST(ParseCarry, Lines) {
  const ParsedStatement parsed = ParseStatement("f",
                                                "carry deep [.image_rows, hidden * count] cut 0 over cp\n"
                                                "carry later* [.image_rows*, hidden * (taps - count)] partial\n");
  ASSERT_EQ(ProblemsText(parsed.problems), "");
  const ModelStatement& statement = parsed.statement;
  ASSERT_EQ(statement.carries.size(), 2U);
  EXPECT_EQ(statement.carries[0].name, "deep");
  EXPECT_EQ(statement.carries[0].type.cut, 0);
  EXPECT_THAT(statement.carries[0].type.over, ElementsAre(Axis::kCp));
  EXPECT_TRUE(statement.carries[0].type.learns);
  EXPECT_FALSE(statement.carries[0].partial);
  EXPECT_EQ(statement.carries[1].name, "later*");
  EXPECT_THAT(statement.carries[1].type.over, IsEmpty());
  EXPECT_TRUE(statement.carries[1].partial);
  EXPECT_EQ(statement.FindCarry("later*"), &statement.carries[1]);
  EXPECT_EQ(statement.FindCarry("later"), nullptr);
  EXPECT_EQ(statement.TapLetter(), 0) << "no piece names them";
}

TEST(ParseCarry, WrongLines) {
  EXPECT_THAT(ProblemsOf("carry x [hidden]"), HasSubstr("`x` is the stream, beside which carries travel"));
  EXPECT_THAT(ProblemsOf("carry deep [hidden]\ncarry deep [hidden]"), HasSubstr("the carry deep is there twice"));
  EXPECT_THAT(ProblemsOf("given deep [hidden]\ncarry deep [hidden]"),
              HasSubstr("the value deep is given, and is no carry"));
  EXPECT_THAT(ProblemsOf("carry deep [hidden]\ngiven deep [hidden]"),
              HasSubstr("the value deep is a carry, and is not given"));
  EXPECT_THAT(ProblemsOf("carry deep* [.image_rows, hidden]"), HasSubstr("a carry for each encoder has a size of one"));
  EXPECT_THAT(ProblemsOf("carry deep [.image_rows*, hidden]"), HasSubstr("is there for each, and is written deep*"));
  EXPECT_THAT(ProblemsOf("carry deep [.image_rows, hidden] cut 0 over cp partial"),
              HasSubstr("the gradient of what is cut is cut, and no term of a sum"));
}

TEST(Carries, AreWhereTheirSizesSay) {
  const ModelStatement* decoder = StatementOf("decoder");
  ASSERT_NE(decoder, nullptr);
  EXPECT_EQ(decoder->TapLetter(), 'D');
  Module module = PrimeModule(*decoder, 2);
  const ModelNumbers numbers({.micro_samples = 1, .sequence_length = 64}, module, *decoder);
  EXPECT_EQ(numbers("taps"), 2);
  EXPECT_EQ(numbers.TapsBefore(decoder->embed), 0);
  EXPECT_EQ(numbers.TapsBehind(decoder->embed), 0);
  EXPECT_EQ(numbers.TapsBefore(decoder->head), 2);
  const StatedPiece& tap = decoder->layers.at('D');
  const StatedCarry& later = *decoder->FindCarry("later*");
  const double hidden = numbers("hidden");
  for (int64_t at : {0, 1}) {
    const ModelNumbers here = numbers.AtTap(at);
    EXPECT_EQ(here.TapsBefore(tap), at);
    EXPECT_EQ(here.TapsBehind(tap), at + 1);
    const RankPiece piece(*decoder, tap, here, {{"samples", 1}, {"image_rows*", 5}});
    EXPECT_THAT(piece.problems(), IsEmpty());
    EXPECT_THAT(piece.ShapeOf(later, at), ElementsAre(5, hidden * static_cast<double>(2 - at)));
    EXPECT_EQ(piece.computes().size(), at == 0 ? 2U : 1U) << "the last one adds what is left";
  }
  module.layers.clear();
  EXPECT_EQ(ModelNumbers({}, module, *decoder)("taps"), 0);
}

// Merger 0 makes the carry, each later one joins its rows.
TEST(Carries, BeginWhereTheyHaveFeatures) {
  const ModelStatement* encoder = StatementOf("qwen_vit");
  ASSERT_NE(encoder, nullptr);
  const Module module = PrimeModule(*encoder, 2);
  const ModelNumbers numbers({.micro_samples = 1, .sequence_length = 64}, module, *encoder);
  for (int64_t at : {0, 1}) {
    const RankPiece piece(*encoder, encoder->layers.at('D'), numbers.AtTap(at),
                          {{"samples", 1}, {"images", 1}, {"patches", 64}});
    EXPECT_THAT(piece.problems(), IsEmpty());
    EXPECT_EQ(piece.computes().back().instruction.kind, at == 0 ? OpKind::kAddBias : OpKind::kJoinFeatures);
  }
}

struct Change {
  std::string name, kind, line, by, problem;

  friend void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }
};

class WrongCarry : public ::testing::TestWithParam<Change> {};

TEST_P(WrongCarry, IsRefused) {
  const auto& [name, kind, line, by, problem] = GetParam();
  std::string text = TextOf(kind);
  EXPECT_EQ(absl::StrReplaceAll({{line, by}}, &text), 1) << line;
  const ParsedStatement parsed = ParseStatement(kind, text);
  ASSERT_EQ(ProblemsText(parsed.problems), "");
  EXPECT_THAT(ProblemsText(StatementProblems(parsed.statement)), HasSubstr(problem));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, WrongCarry,
    ::testing::Values(
        Change{"of_another_width", "decoder", "hidden * (taps - count)] partial",
               "hidden * (1 + taps - count)] partial", "piece embed returns later*"},
        Change{"never_named", "qwen_vit", "carry deep ", "carry idle [hidden]\ncarry deep ",
               "no piece names the carry idle"},
        Change{"of_the_embedding", "qwen_vit", "  inputs patches image_grid\n", "  inputs patches image_grid deep\n",
               "piece embed takes the carry deep, which nothing has made before it"},
        Change{"behind_the_head", "qwen_vit", "  outputs rows\n", "  outputs rows deep\n",
               "piece head returns the carry deep, which nothing takes behind it"},
        Change{"of_two_letters", "decoder", "  x_out = add x d\n  outputs x_out\n",
               "  x_out = add x d\n  outputs x_out later*\n", "one kind of layers takes and gives carries"},
        Change{"not_given_on", "qwen_vit", "  outputs x deep\n", "  outputs x\n", "makes deep, which nothing reads"},
        Change{"in_front_of_the_stream", "qwen_vit", "  outputs x deep\n", "  outputs deep x\n",
               "piece D does not return the stream"},
        Change{"in_another_order", "decoder", "[] image_token token*\n  outputs x later*\n\n# One storage",
               "[] image_token token*\n  outputs x later* later*\n\n# One storage",
               "their lines stand in another order"},
        Change{"another_part", "decoder", "split_features rows* [] first (hidden)",
               "split_features rows* [] first (2 * hidden)", "piece embed: add_images of x, own*"},
        Change{"a_tap_of_no_tap", "qwen_vit", "first (output.hidden)", "first (output.hidden * tap)",
               "\"tap\" is no constant, no axis and no number of the model"},
        Change{"a_count_in_a_compute", "qwen_vit", "first (output.hidden * tap)", "first (output.hidden * count)",
               "\"count\" is no constant, no axis and no number of the model"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright
