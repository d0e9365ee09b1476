// Dialects as a whole: what one line says and another one does not know.
#include "planner/state/dialect/dialect_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/state/dialect/parse_dialect.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char kToyStatement[] = R"(kind toy
layer M mamba: Mamba-2
layers pattern: letters
constant hidden int: width
constant heads int = 4: heads
choice norm layer 1, none 0 = none sets norm: norm
constant norm flag
)";
const std::string kWholeDialect = "dialect toy\n  layers = p letters\n  hidden = hidden_size\n";

const ModelStatement* ToyStatement(std::string_view) {
  static const ModelStatement statement = ParseStatement("f", kToyStatement).statement;
  return &statement;
}

std::string WholeProblems(const std::string& lines) {
  ParsedDialects parsed = ParseDialects("f", kToyStatement + lines, *ToyStatement(""));
  EXPECT_EQ(ProblemsText(parsed.problems), "") << lines;
  return ProblemsText(DialectProblems(DialectSet(std::move(parsed.dialects)), ToyStatement));
}
std::string WholeProblem(const std::string& line) {
  return WholeProblems(absl::StrCat(kWholeDialect, "  ", line, "\n"));
}

TEST(DialectProblems, ThoseOfTheProgramHaveNone) {
  EXPECT_EQ(ProblemsText(DialectProblems(BuiltInDialects())), "");
  EXPECT_GT(BuiltInDialects().all().size(), 3U);
}

TEST(DialectProblems, WhatARecipeNeedsIsGiven) {
  EXPECT_EQ(WholeProblems(kWholeDialect), "");
  EXPECT_EQ(WholeProblems("dialect toy\n  layers = p letters\n"),
            "f:8:9: no line gives hidden, which a recipe must have\n");
  EXPECT_EQ(WholeProblems("dialect toy\n  hidden = h\n"), "f:8:9: no line says which layers there are\n");
  EXPECT_THAT(WholeProblem("layers M = n"), HasSubstr("recipes have no key `layers`, which such a line gives"));
}

TEST(DialectProblems, BlocksHaveTheirLayers) {
  const auto of_blocks = [](const std::string& lines) {
    return WholeProblems("dialect toy\n  read some list = s\n  read step int = t else 1\n" + lines + "  hidden = h\n");
  };
  EXPECT_EQ(of_blocks("  blocks n\n  place M when (i + 1) % step = 0 and not i in some, M\n"), "");
  EXPECT_EQ(of_blocks("  blocks n\n"), "f:11:3: no line `place` says which layers a block has\n");
  EXPECT_EQ(of_blocks("  blocks n\n  place M when i in soome, M\n"),
            "f:12:21: \"soome\" is no list here; did you mean `some`?\n");
  EXPECT_EQ(of_blocks("  blocks n\n  place M when i in step, M\n"), "f:12:21: \"step\" is no list here\n");
  EXPECT_EQ(of_blocks("  blocks n\n  place M when i > stp, M\n"),
            "f:12:20: \"stp\" is no number here; did you mean `step`?\n");
  EXPECT_EQ(of_blocks("  blocks n\n  place M when i > hidden, M\n"), "f:12:20: no line before `blocks` gives hidden\n");
  EXPECT_EQ(of_blocks("  blocks n\n  place M\n  heads is some\n"), "f:13:12: \"some\" is no number here\n");
}

TEST(DialectProblems, NamesAreThoseOfNumbers) {
  EXPECT_EQ(WholeProblem("heads is hiden / 2"), "f:11:12: \"hiden\" is no number here; did you mean `hidden`?\n");
  EXPECT_EQ(WholeProblem("heads is hidden / 2: {hiden} / 2"),
            "f:11:3: \"hiden\" is no number here; did you mean `hidden`?\n");
  EXPECT_EQ(WholeProblem("heads is hidden / 2: half of {hidden"), "f:11:3: a `{` of the text is not closed\n");
  EXPECT_THAT(WholeProblem("check a is layer"), HasSubstr("did you mean `layers`?"));
  EXPECT_THAT(WholeProblem("write a is hidden * sequenc"), HasSubstr("did you mean `sequence`?"));
  EXPECT_THAT(WholeProblem("write a 1 when given(b)"), HasSubstr("\"b\" is no number here"));
  EXPECT_THAT(WholeProblem("refuse hidden when hidden > 4: too wide"), HasSubstr("\"hidden\" is no local number"));
  EXPECT_THAT(WholeProblem("make a [width] ones"), HasSubstr("\"width\" is no number here"));
  EXPECT_THAT(WholeProblem("extra a [width]: a, b"), HasSubstr("\"width\" is no number here"));
  EXPECT_THAT(WholeProblem("extra a copy of b unless nrm none: a, b"),
              HasSubstr("\"nrm\" is no key; did you mean `norm`?"));
  EXPECT_THAT(WholeProblem("write only heads 2 or width: why"), HasSubstr("\"width\" is no number here"));
}

TEST(DialectProblems, WordsAreThoseOfTheChoice) {
  EXPECT_THAT(WholeProblem("norm = kind words ln layr"),
              HasSubstr("\"layr\" is no word of the key norm; did you mean `layer`?"));
  EXPECT_THAT(WholeProblem("norm = kind words ln layer else none"),
              HasSubstr("\"none\" is none of the words of config.json"));
  EXPECT_THAT(WholeProblem("norm is non"), HasSubstr("did you mean `none`?"));
  EXPECT_THAT(WholeProblem("write only norm non: why"), HasSubstr("did you mean `none`?"));
  EXPECT_THAT(WholeProblem("heads = h else none"), HasSubstr("is neither such a number nor a name before it"));
  EXPECT_THAT(WholeProblem("heads = h else 0"), HasSubstr("is neither such a number"));
  EXPECT_EQ(WholeProblem("heads = h else hidden"), "");
  EXPECT_EQ(WholeProblem("read width int = w else 2\n  heads = h else width"), "");
  EXPECT_THAT(WholeProblem("heads = h when hiden > 1"), HasSubstr("\"hiden\" is no number here"));
}

TEST(DialectProblems, WhatIsWrittenIsRead) {
  EXPECT_EQ(WholeProblem("write hidden_size"), "");
  EXPECT_EQ(WholeProblem("write hiden_size"),
            "f:11:9: no line reads hiden_size, so it has no value here; did you mean `hidden_size`?\n");
}

TEST(DialectProblems, DialectsKnowEachOther) {
  EXPECT_THAT(WholeProblem("like other"), HasSubstr("it is like \"other\", which is no other dialect"));
  EXPECT_THAT(WholeProblems(kWholeDialect + kWholeDialect), HasSubstr("two lines `dialect` are of the type \"toy\""));
  EXPECT_THAT(WholeProblem("language in t as other"), HasSubstr("there is no dialect \"other\" of one model"));
}

TEST(DialectProblems, TypesThatAreRefusedAreNoOthers) {
  ParsedDialects parsed = ParseDialects(
      "f",
      kToyStatement + kWholeDialect + "dialect toy refused: why\ndialect b, c* refused: why\ndialect b refused: why\n",
      *ToyStatement(""));
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  const DialectSet set(std::move(parsed.dialects), std::move(parsed.refused));
  EXPECT_EQ(ProblemsText(DialectProblems(set, ToyStatement)),
            "f:11:9: two lines `dialect` are of the type \"toy\"\n"
            "f:13:9: two lines `dialect` are of the type \"b\"\n");
  ASSERT_NE(set.RefusalOf("cd"), nullptr);
  EXPECT_EQ(*set.RefusalOf("cd"), "why");
  EXPECT_EQ(set.RefusalOf("d"), nullptr);
  EXPECT_EQ(set.OfType("cd"), nullptr);
}

TEST(DialectProblems, AFirstRecipeSaysWhatNoFolderSays) {
  static ModelStatement statement;
  const auto problems = [&](const std::string& firsts, const std::string& lines) {
    const std::string text = absl::StrCat(kToyStatement, "can has_images\n", firsts, "dialect toy\n",
                                          "  layers = p letters\n  hidden = hidden_size\n", lines);
    statement = ParseStatement("f", text).statement;
    ParsedDialects parsed = ParseDialects("f", text, statement);
    EXPECT_EQ(ProblemsText(parsed.problems), "") << lines;
    return ProblemsText(DialectProblems(DialectSet(std::move(parsed.dialects)), [](std::string_view) {
      return static_cast<const ModelStatement*>(&statement);
    }));
  };
  EXPECT_EQ(problems("first hidden is 8\n", ""),
            "f:9:7: folders of the type \"toy\" say the key hidden (from line 12)\n");
  EXPECT_EQ(problems("first norm is none\n", "  norm = kind words ln layer\n"),
            "f:9:7: folders of the type \"toy\" say the key norm (from line 13)\n");
  EXPECT_EQ(problems("first heads is 2\n", "  heads is hidden / 4\n"),
            "f:9:7: folders of the type \"toy\" say the key heads (from line 13)\n");
  EXPECT_EQ(problems("first norm is none\n", "  norm when given(hidden) is layer\n  norm is none\n"),
            "f:9:7: folders of the type \"toy\" say the key norm (from line 13)\n");
  // What is the same of each folder, and of parts of composites.
  EXPECT_EQ(problems("first norm is none\nfirst heads is 2\n", "  norm is layer\n  heads is 4\n"), "");
  EXPECT_EQ(problems("first hidden is 8\n", "  without folder\n"), "");
}

// Each once, also where several alternatives have the line.
TEST(DialectProblems, TensorsHoldWeightsOfTheStatement) {
  const char piece[] = "piece M\n  weight up up.weight [hidden, hidden] zeros\n";
  const ParsedStatement toy = ParseStatement("f", std::string(kToyStatement) + piece);
  static ModelStatement statement;
  statement = toy.statement;
  const auto problems = [&](const std::string& lines) {
    ParsedDialects parsed = ParseDialects("f", kWholeDialect + lines, statement);
    EXPECT_EQ(ProblemsText(parsed.problems), "") << lines;
    return ProblemsText(DialectProblems(DialectSet(std::move(parsed.dialects)), [](std::string_view) {
      return static_cast<const ModelStatement*>(&statement);
    }));
  };
  EXPECT_EQ(problems("  tensor a.{layer} = up.weight along 0 each heads\n"), "");
  EXPECT_EQ(problems("  tensor a = upp.weight\n  form x: one\n  form x: two\n"),
            "f:4:14: no piece has a weight \"upp.weight\"; did you mean `up.weight`?\n");
  EXPECT_EQ(problems("  tensor a = up.weight along 0 each haeds\n"),
            "f:4:37: \"haeds\" is no constant of toy; did you mean `heads`?\n");
}

}  // namespace
}  // namespace planwright
