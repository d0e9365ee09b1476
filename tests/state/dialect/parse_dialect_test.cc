// Each line of a dialect by itself: what is read of it, and that one with a mistake is none.
#include "planner/state/dialect/parse_dialect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "planner/plan/statement/parse_statement.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const char kSmallStatement[] = R"(kind toy
layer M mamba: Mamba-2
layer - mlp: MLP
layers pattern: letters
constant hidden int: width
constant eps real = 1e-5: epsilon
choice norm layer 1, none 0 sets norm: norm
section mlp of -: MLP
constant mlp.ffn int of -: width
constant norm flag
)";
const std::string kDialectHead = "dialect toy\n";

ParsedDialects ParsedOf(const std::string& lines) {
  const std::string text = kSmallStatement + lines;
  return ParseDialects("f", text, ParseStatement("f", text).statement);
}
Dialect DialectOf(const std::string& line) {
  ParsedDialects parsed = ParsedOf(kDialectHead + "  " + line + "\n");
  EXPECT_EQ(ProblemsText(parsed.problems), "") << line;
  return parsed.dialects.at(0);
}
template <typename T>
T LineOf(const std::string& line) {
  const Dialect dialect = DialectOf(line);
  EXPECT_EQ(dialect.lines.size(), 1U) << line;
  return std::get<T>(dialect.lines.at(0));
}
// "COLUMN MESSAGE" of the one line of a dialect, which is line 12 and begins in column 3.
std::string LineProblem(const std::string& line) {
  const ParsedDialects parsed = ParsedOf(kDialectHead + "  " + line + "\n");
  if (parsed.problems.size() != 1) return absl::StrCat(parsed.problems.size(), " problems");
  const TextProblem& problem = parsed.problems[0];
  EXPECT_EQ(problem.where.line, 12);
  return absl::StrCat(problem.where.column, " ", problem.message);
}

TEST(ParseDialect, BeginsWithItsTypes) {
  const Dialect dialect = ParsedOf("dialect toy, Toy_* \n").dialects.at(0);
  EXPECT_THAT(dialect.names, ElementsAre("toy", "Toy_*"));
  EXPECT_EQ(dialect.kind, "toy");
  const Dialect code = ParsedOf("dialect toy where a or b called the code of toys\n").dialects.at(0);
  EXPECT_THAT(code.where, ElementsAre("a", "b"));
  EXPECT_EQ(code.called, "the code of toys");
  EXPECT_EQ(ParsedOf("dialect toy where a\n").problems.size(), 1U) << "messages must call it something";
  EXPECT_EQ(ParsedOf("dialect a\n  like b\ndialect b\n").dialects.size(), 2U);
}

TEST(ParseDialect, OfTheWhole) {
  EXPECT_EQ(DialectOf("architecture ToyModel").architecture, "ToyModel");
  EXPECT_EQ(DialectOf("like other").like, "other");
  EXPECT_FALSE(DialectOf("without projection").projection);
  EXPECT_THAT(DialectOf("without mlp").without, ElementsAre("mlp"));
  EXPECT_EQ(
      LineProblem("without mpl"),
      "11 \"mpl\" is none of `projection`, `folder` and `tensor`, and no section of the recipe; did you mean `mlp`?");
  const DialectRemark remark = DialectOf("remark alone mlp: it has, as they say, no gate").remarks.at(0);
  EXPECT_TRUE(remark.alone);
  EXPECT_EQ(remark.section, "mlp");
  EXPECT_EQ(remark.text, "it has, as they say, no gate");
  EXPECT_EQ(LineProblem("remark hidden: it is wide"), "10 \"hidden\" is no section of the recipe");
  EXPECT_THAT(DialectOf("unwritten a b: no reason").unwritten, ElementsAre("a", "b"));
}

TEST(ParseDialect, Numbers) {
  const auto hidden = LineOf<DialectNumber>("hidden = hidden_size | d_model else 64 loose");
  EXPECT_FALSE(hidden.local);
  EXPECT_THAT(hidden.paths, ElementsAre("hidden_size", "d_model"));
  EXPECT_EQ(hidden.type, DialectNumber::Type::kInteger);
  EXPECT_EQ(hidden.otherwise, "64");
  EXPECT_TRUE(hidden.loose);
  EXPECT_EQ(LineOf<DialectNumber>("eps = e").type, DialectNumber::Type::kReal);
  EXPECT_EQ(LineOf<DialectNumber>("mlp.ffn = a.b").of, '-');
  EXPECT_THAT(LineOf<DialectNumber>("norm = kind words ln layer, no none else ln").words,
              ElementsAre(Pair("ln", "layer"), Pair("no", "none")));
  const auto local = LineOf<DialectNumber>("read ratio real or 0 = r");
  EXPECT_TRUE(local.local && local.or_zero);
  EXPECT_EQ(local.type, DialectNumber::Type::kReal);
  EXPECT_EQ(LineProblem("hiden = a"),
            "3 \"hiden\" is no key of such a recipe, and begins no line of a dialect; did you mean `hidden`?");
  EXPECT_EQ(LineProblem("hidden ="), "11 expected a key of config.json, found the end of the line");
  EXPECT_EQ(LineProblem("norm = kind"), "14 expected `words`, found the end of the line");
  EXPECT_EQ(LineProblem("read hidden int = a"), "8 it is a key of the recipe, which is read without `read`");
  EXPECT_EQ(LineProblem("read a whole = b"), "10 expected `int` or `real` or `flag` or `list`, found \"whole\"");
  EXPECT_EQ(LineOf<DialectNumber>("read some list = a.b").type, DialectNumber::Type::kList);
  EXPECT_EQ(LineOf<DialectNumber>("hidden = a else b loose when eps > 1").when->text(), "eps > 1");
  EXPECT_EQ(LineOf<DialectFunction>("read by radio_arguments").name, "radio_arguments");
  EXPECT_EQ(LineProblem("read by hand"), "11 expected `radio_arguments`, found \"hand\"");
}

TEST(ParseDialect, WhatIsComputed) {
  const auto formula = LineOf<DialectComputed>("mlp.ffn when given(a) is floor(hidden * 4): {hidden} x 4");
  EXPECT_EQ(formula.when->text(), "given(a)");
  EXPECT_EQ(formula.formula->text(), "floor(hidden * 4)");
  EXPECT_EQ(formula.source, "{hidden} x 4");
  EXPECT_EQ(formula.of, '-');
  EXPECT_EQ(LineOf<DialectComputed>("norm is none loose").word, "none");
  EXPECT_TRUE(LineOf<DialectComputed>("norm is none loose").loose);
  EXPECT_EQ(LineProblem("hidden is 2 *"), "16 the formula needs a number or a name here, found the end");
  EXPECT_EQ(LineOf<DialectCheck>("check a | b is hidden").formula->text(), "hidden");
  EXPECT_FALSE(LineOf<DialectCheck>("check a | b").formula.has_value());
  EXPECT_EQ(LineOf<DialectTell>("refuse a when a > 1: too many").refused, "a");
  EXPECT_EQ(LineOf<DialectTell>("tell when a > 1: many").text, "many");
}

TEST(ParseDialect, Layers) {
  const auto words = LineOf<DialectLayers>("layers = types | kinds words mamba M, dense -");
  EXPECT_THAT(words.words, ElementsAre(Pair("mamba", 'M'), Pair("dense", '-')));
  EXPECT_THAT(words.paths, ElementsAre("types", "kinds"));
  EXPECT_EQ(LineOf<DialectLayers>("layers = p letters").form, DialectLayers::Form::kLetters);
  EXPECT_EQ(LineOf<DialectLayers>("layers M = n").letter, 'M');
  const Dialect blocks =
      ParsedOf(kDialectHead + "  blocks n | m\n  place M when i > 0 and not i in some, -\n  place -\n").dialects.at(0);
  const auto& places = std::get<DialectLayers>(blocks.lines.at(0)).places;
  EXPECT_THAT(std::get<DialectLayers>(blocks.lines.at(0)).paths, ElementsAre("n", "m"));
  ASSERT_EQ(places.size(), 2U);
  ASSERT_EQ(places[0].choices.size(), 2U);
  EXPECT_EQ(places[0].choices[0].letter, 'M');
  EXPECT_THAT(places[0].choices[0].when->names(), ElementsAre("i", "i in some"));
  EXPECT_EQ(places[0].choices[1].letter, '-');
  EXPECT_FALSE(places[0].choices[1].when || places[1].choices[0].when);
  EXPECT_EQ(LineProblem("place M"), "3 no line `blocks` is before it");
  const auto place = [](const std::string& line) {
    return ProblemsText(ParsedOf(kDialectHead + "  blocks n\n  " + line + "\n").problems);
  };
  EXPECT_EQ(place("place M when i > 1"), "f:13:16: the last letter has no condition, as each block has one\n");
  EXPECT_EQ(place("place M, -"), "f:13:9: no letter comes behind one without a condition\n");
  EXPECT_EQ(place("place M when i in, -"), "f:13:20: the formula needs the name of a list here\n");
  EXPECT_EQ(LineProblem("layers = types words moe E"), "28 no kind of layers has the letter E");
  EXPECT_EQ(LineProblem("layers = types"), "17 expected `words`, found the end of the line");
}

TEST(ParseDialect, Rules) {
  const auto only = LineOf<DialectRule>("only act hidden_act silu of M: the activation");
  EXPECT_THAT(only.paths, ElementsAre("act", "hidden_act"));
  EXPECT_EQ(only.value, "\"silu\"");
  EXPECT_EQ(only.of, 'M');
  EXPECT_EQ(only.why, "the activation");
  EXPECT_EQ(LineOf<DialectRule>("only limit [0.0, inf]: no limit").value, R"([0.0,{"__float__":"Infinity"}])");
  EXPECT_EQ(LineOf<DialectRule>("only mean pixel_mean within 1e-6: CLIP").within, 1e-6);
  EXPECT_EQ(LineOf<DialectRule>("only bias true: it has").value, "true");
  EXPECT_EQ(LineOf<DialectRule>("nothing a b: none").kind, DialectRule::Kind::kNothing);
  EXPECT_EQ(LineOf<DialectRule>("note a unless 0 of M: not taken").unless, 0);
  EXPECT_EQ(LineOf<DialectRule>("copied a unless 0: copied").kind, DialectRule::Kind::kCopied);
  EXPECT_THAT(LineOf<DialectRule>("silent a.* b: why").paths, ElementsAre("a.*", "b"));
  const auto each = LineOf<DialectRule>("only each kinds full: all are");
  EXPECT_TRUE(each.each);
  EXPECT_THAT(each.paths, ElementsAre("kinds"));
  EXPECT_EQ(each.value, "\"full\"");
  EXPECT_EQ(LineOf<DialectRule>("nothing window else 4096 of M: none").otherwise, "4096");
  EXPECT_EQ(LineProblem("only bias: it has"), "12 expected a value, found \":\"");
  EXPECT_EQ(LineProblem("nothing: why"), "10 expected a key of config.json, found \":\"");
  EXPECT_EQ(LineProblem("nothing a"), "12 expected `:`, found the end of the line");
  EXPECT_EQ(LineProblem("note a of E: why"), "13 no kind of layers has the letter E");
}

TEST(ParseDialect, Composites) {
  const auto part = LineOf<DialectPart>("encoder in vision | image as a | b");
  EXPECT_TRUE(part.encoder);
  EXPECT_THAT(part.paths, ElementsAre("vision", "image"));
  EXPECT_THAT(part.dialects, ElementsAre("a", "b"));
  EXPECT_FALSE(LineOf<DialectPart>("language in text as a").encoder);
  EXPECT_THAT(LineOf<DialectImageToken>("image_token = a | b").paths, ElementsAre("a", "b"));
  EXPECT_EQ(LineProblem("encoder as a"), "11 expected `in`, found \"as\"");
}

TEST(ParseDialect, Writing) {
  const Dialect plain = DialectOf("write a b");
  ASSERT_EQ(plain.writing.size(), 2U);
  EXPECT_EQ(plain.writing[1].path, "b");
  EXPECT_THAT(plain.writing[1].value, IsEmpty());
  const Dialect value = DialectOf("write a b 0.5 of M when hidden > 1: a is half");
  EXPECT_EQ(value.writing[1].value, "0.5");
  EXPECT_EQ(value.writing[0].of, 'M');
  EXPECT_EQ(value.writing[0].when->text(), "hidden > 1");
  EXPECT_EQ(value.writing[0].text, "a is half");
  EXPECT_THAT(value.writing[1].text, IsEmpty()) << "it is told once";
  EXPECT_EQ(DialectOf("write act \"gelu\"").writing.at(0).value, "\"gelu\"");
  EXPECT_EQ(DialectOf("write list [0, 1]").writing.at(0).value, "[0,1]");
  EXPECT_EQ(DialectOf("write a is 1 / hidden").writing.at(0).formula->text(), "1 / hidden");
  EXPECT_EQ(DialectOf("write list blocks M").writing.at(0).blocks, 'M');
  EXPECT_EQ(LineProblem("write list blocks E"), "21 no kind of layers has the letter E");
  EXPECT_EQ(DialectOf("write only hidden 2: no other width").sayable.at(0).value, "2");
  EXPECT_EQ(DialectOf("write only hidden 2 or 2 * heads: no other").sayable.at(0).same->text(), "2 * heads");
  EXPECT_EQ(LineProblem("write 5"), "9 expected a key of config.json, found \"5\"");
  EXPECT_EQ(LineProblem("write only hiden 2: none"), "14 \"hiden\" is no key of such a recipe; did you mean `hidden`?");
}

TEST(ParseDialect, Tensors) {
  EXPECT_EQ(DialectOf("names {encoder}a. ->").forms.Forms().at(0).names.at(0).ours, "{encoder}a.");
  EXPECT_TRUE(DialectOf("names a. -> b.").language_forms.empty());
  EXPECT_EQ(DialectOf("language names a. -> b.").language_forms.Forms().at(0).names.at(0).theirs, "b.");
  EXPECT_EQ(DialectOf("tensor a = b + c along 0").forms.Forms().at(0).tensors.at(0).parameters.size(), 2U);
  EXPECT_EQ(LineProblem("language hidden = 1"), "12 expected `in`, `names`, `tensor` or `form`, found \"hidden\"");
  const DialectExtra extra =
      DialectOf("extra ...a.*.b [hidden, frames x 3 * hidden, any] is 1: scales of blocks, users, all of them")
          .extras.at(0);
  EXPECT_EQ(extra.pattern, "a.*.b");
  EXPECT_TRUE(extra.anywhere);
  ASSERT_EQ(extra.sizes->size(), 3U);
  EXPECT_EQ(extra.sizes->at(1).any, "frames");
  EXPECT_EQ(extra.sizes->at(1).formula->text(), "3 * hidden");
  EXPECT_EQ(extra.sizes->at(2).any, "any");
  EXPECT_EQ(extra.is, "1");
  EXPECT_EQ(extra.what, "scales of blocks");
  EXPECT_EQ(extra.who, "users, all of them");
  EXPECT_THAT(DialectOf("extra a [hidden] copy of b.c: a copy, others").extras.at(0).copy_of, ElementsAre("b.c"));
  EXPECT_THAT(DialectOf("extra a copy of b | c.d: a copy, others").extras.at(0).copy_of, ElementsAre("b", "c.d"));
  const DialectExtra copy = DialectOf("extra a copy of b.c unless norm none: a copy, others").extras.at(0);
  EXPECT_EQ(copy.own_key + ": " + copy.own_value, "norm: none");
  EXPECT_EQ(LineProblem("extra a: scales").substr(0, 3), "9 b") << "who needs it?";
  const DialectHint optional = DialectOf("optional a b called a final norm: it is drawn").optional.at(0);
  EXPECT_THAT(optional.names, ElementsAre("a", "b"));
  EXPECT_EQ(optional.called, "a final norm");
  EXPECT_EQ(DialectOf("missing a: set it").missing.at(0).text, "set it");
  const DialectMade made = DialectOf("make alone a.{layer}.b [hidden, 2] fp32 ones: a: ones").made.at(0);
  EXPECT_TRUE(made.alone);
  EXPECT_EQ(made.name, "a.{layer}.b");
  EXPECT_EQ(made.sizes.size(), 2U);
  EXPECT_EQ(made.dtype, DType::kFp32);
  EXPECT_EQ(made.fill, "ones");
  EXPECT_EQ(made.text, "a: ones");
  EXPECT_EQ(LineProblem("make a [1] many"),
            "14 \"many\" is no value: expected a number, true, false, null, a list, or a word in quotes");
}

// Lines in common are lines of each dialect that has them, where it has them.
TEST(ParseDialect, LinesInCommon) {
  const char common[] = "dialect lines wide\n  hidden = a\n  only act silu: why\n";
  const ParsedDialects parsed =
      ParsedOf(absl::StrCat(common, "dialect one\n  eps = e\n  has wide\ndialect two\n  has wide\n  like one\n"));
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  ASSERT_EQ(parsed.dialects.size(), 2U);
  EXPECT_EQ(parsed.dialects[0].lines.size(), 3U);
  EXPECT_EQ(std::get<DialectNumber>(parsed.dialects[0].lines[1]).name, "hidden");
  EXPECT_EQ(parsed.dialects[1].lines.size(), 2U);
  EXPECT_EQ(parsed.dialects[1].like, "one");
  const auto problems = [](const std::string& lines) { return ProblemsText(ParsedOf(lines).problems); };
  EXPECT_EQ(problems(absl::StrCat(common, "dialect one\n")), "f:11:15: no dialect has the lines \"wide\"\n");
  EXPECT_EQ(problems(absl::StrCat(common, "dialect one\n  has wde\n")),
            "f:15:7: no lines \"wde\" are before it; did you mean `wide`?\n"
            "f:11:15: no dialect has the lines \"wide\"\n");
  EXPECT_EQ(problems("dialect lines a\n  hiden = b\ndialect one\n  has a\ndialect two\n  has a\n"),
            "f:12:3: \"hiden\" is no key of such a recipe, and begins no line of a dialect; did you mean `hidden`?\n")
      << "it is told once";
  EXPECT_EQ(problems("dialect lines a\ndialect lines a\ndialect b\n  has a\n"),
            "f:12:15: there are lines \"a\" already\n");
}

TEST(ParseDialect, TypesThatAreRefused) {
  const ParsedDialects parsed = ParsedOf(
      "dialect one\n  eps = e\ndialect two, Two_* refused: it has, as they say, gates\n"
      "dialect three\n  eps = e\n");
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  EXPECT_EQ(parsed.dialects.size(), 2U);
  ASSERT_EQ(parsed.refused.size(), 1U);
  EXPECT_THAT(parsed.refused[0].names, ElementsAre("two", "Two_*"));
  EXPECT_EQ(parsed.refused[0].why, "it has, as they say, gates");
  EXPECT_EQ(parsed.refused[0].line->At(0).line, 13);
  const auto problems = [](const std::string& lines) { return ProblemsText(ParsedOf(lines).problems); };
  EXPECT_EQ(problems("dialect one refused\n"), "f:11:20: expected `:`, found the end of the line\n");
  EXPECT_EQ(problems("dialect one refused:\n"),
            "f:11:21: expected why such models cannot be expressed, found the end of the line\n");
  EXPECT_EQ(problems("dialect one refused: with {hidden} gates\n"),
            "f:11:27: nothing of such a model is read, so the text has no {NAME}\n");
  EXPECT_EQ(problems("dialect one refused: it has gates\n  eps = e\n"),
            "f:12:3: expected the next `dialect`: one that is refused has no lines, found \"eps\"\n");
}

TEST(ParseDialect, StarsOfTypesAreAtTheirEnd) {
  for (const std::string ending : {" refused: why\n", "\n  eps = e\n"}) {
    EXPECT_EQ(ProblemsText(ParsedOf("dialect one, a*" + ending).problems), "");
    for (const std::string name : {"*", "cl*p", "*p", "a**"}) {
      const std::string text = ProblemsText(ParsedOf("dialect one, " + name + ending).problems);
      EXPECT_EQ(text.substr(0, text.find('\n')),
                "f:11:14: \"" + name + "\" has a star that is not at the end of a beginning: expected NAME or NAME*");
    }
  }
}

TEST(ParseDialect, HasTheLimitsOfItsText) {
  std::string lines = kDialectHead;
  for (int i = 0; i < 2001; ++i) lines += "  silent a: why\n";
  EXPECT_EQ(ProblemsText(ParsedOf(lines).problems),
            "f:2001:3: expected the end of the text: it may have 2000 lines, found \"silent\"\n");
}

// A bad line does not hide the next one.
TEST(ParseDialect, TellsAllProblemsOfAText) {
  EXPECT_EQ(ParsedOf(kDialectHead + "  hiden = a\n  only b\n  hidden = c\n").problems.size(), 2U);
}

}  // namespace
}  // namespace planwright
