// Each line of a statement by itself: what is read of it, and that one with a mistake is none.
#include "planner/plan/statement/parse_statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <variant>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ModelStatement Of(const std::string& text) {
  ParsedStatement parsed = ParseStatement("f", text);
  EXPECT_EQ(ProblemsText(parsed.problems), "") << text;
  return std::move(parsed.statement);
}
StatedPiece PieceOf(const std::string& text) { return Of("piece M\n" + text).layers.at('M'); }

// "f:LINE:COLUMN: MESSAGE", without the end of the line. The lines of a piece begin in line 2.
std::string ProblemsOf(const std::string& text) {
  const std::string problems = ProblemsText(ParseStatement("f", text).problems);
  return problems.substr(0, problems.find_last_not_of('\n') + 1);
}
std::string ProblemsOfPiece(const std::string& text) { return ProblemsOf("piece M\n" + text); }

// Sizes as they are written; run-time sizes with their dot.
std::vector<std::string> SizesOf(const StatedType& type) {
  std::vector<std::string> sizes;
  for (const StatedType::Size& size : type.sizes) {
    const auto* symbol = std::get_if<std::string>(&size);
    sizes.push_back(symbol ? "." + *symbol : std::get<Expression>(size).text());
  }
  return sizes;
}

TEST(ParseStatement, Can) {
  EXPECT_TRUE(Of("can has_images").has_images);
  EXPECT_FALSE(Of("can has_images").carries_loss);
  EXPECT_TRUE(Of("can carries_loss").carries_loss);
  EXPECT_EQ(ProblemsOf("can fly"), "f:1:5: expected `has_images` or `carries_loss`, found \"fly\"");
}

TEST(ParseStatement, Stream) {
  const ModelStatement plain = Of("stream [.tokens, hidden] cut 0 over cp");
  EXPECT_THAT(SizesOf(plain.stream), ElementsAre(".tokens", "hidden"));
  EXPECT_EQ(plain.stream.cut, 0);
  EXPECT_THAT(plain.stream.over, ElementsAre(Axis::kCp));
  EXPECT_TRUE(plain.stream.learns);
  EXPECT_FALSE(plain.zigzag);
  const ModelStatement zigzag = Of("stream [sequence, samples, 2 * hidden] cut 1 over cp tp zigzag");
  EXPECT_THAT(SizesOf(zigzag.stream), ElementsAre("sequence", "samples", "2 * hidden"));
  EXPECT_EQ(zigzag.stream.cut, 1);
  EXPECT_THAT(zigzag.stream.over, ElementsAre(Axis::kCp, Axis::kTp));
  EXPECT_TRUE(zigzag.zigzag);
  EXPECT_EQ(ProblemsOf("stream [a, b] cut 2 over cp"), "f:1:19: there is no dim 2: dims count from 0, and there are 2");
  EXPECT_EQ(ProblemsOf("stream [a, b] cut 0 over width"), "f:1:26: \"width\" is no axis");
  EXPECT_EQ(ProblemsOf("stream [a] cut 0 over cp\nstream [b] cut 0 over cp"), "f:2:1: the stream is stated twice");
}

TEST(ParseStatement, Given) {
  const StatedType ids = Of("given image_ids int64 host [.images, 2]").given.at("image_ids");
  EXPECT_EQ(ids.dtype, DType::kInt64);
  EXPECT_TRUE(ids.host);
  EXPECT_THAT(SizesOf(ids), ElementsAre(".images", "2"));
  EXPECT_EQ(ids.cut, -1);
  EXPECT_FALSE(ids.learns);
  const StatedType rows = Of("given rows [.image_rows*, hidden] cut 0 over cp learns").given.at("rows");
  EXPECT_EQ(rows.dtype, std::nullopt);
  EXPECT_FALSE(rows.host);
  EXPECT_THAT(SizesOf(rows), ElementsAre(".image_rows*", "hidden"));
  EXPECT_EQ(rows.cut, 0);
  EXPECT_TRUE(rows.learns);
  EXPECT_EQ(ProblemsOf("given a [1]\ngiven a [2]"), "f:2:7: the value a is given twice");
}

TEST(ParseStatement, Gathered) {
  EXPECT_THAT(Of("gathered tokens lane_tokens").gathered, ElementsAre(Pair("tokens", "lane_tokens")));
  EXPECT_EQ(ProblemsOf("gathered tokens"),
            "f:1:16: expected the run-time size of all ranks, found the end of the line");
}

TEST(ParseStatement, Size) {
  const ModelStatement statement = Of("size rows = patches / merged");
  ASSERT_EQ(statement.sizes.size(), 1u);
  EXPECT_EQ(statement.sizes[0].name, "rows");
  EXPECT_EQ(statement.sizes[0].formula.text(), "patches / merged");
  EXPECT_EQ(ProblemsOf("size rows patches"), "f:1:11: expected `=`, found \"patches\"");
}

TEST(ParseStatement, CountsSplitAndProbe) {
  EXPECT_EQ(PieceOf("counts token_counts").counts, "token_counts");
  EXPECT_THAT(PieceOf("split qkv query kv").parts, ElementsAre(Pair("qkv", ElementsAre("query", "kv"))));
  EXPECT_EQ(ProblemsOfPiece("split qkv a b\nsplit qkv c d"), "f:3:7: the value is split twice");
  const std::vector<StatedProbe> probes = PieceOf("probe y layer{layer}.out\nwhen tp > 1: probe z part").probes;
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0].value, "y");
  EXPECT_EQ(probes[0].name, "layer{layer}.out");
  EXPECT_FALSE(probes[0].when.has_value());
  EXPECT_EQ(probes[1].value, "z");
  EXPECT_EQ(probes[1].when->text(), "tp > 1");
  EXPECT_EQ(ProblemsOfPiece("probe y"), "f:2:8: expected the name of the probe, found the end of the line");
  EXPECT_EQ(ProblemsOf("counts token_counts"),
            "f:1:1: \"counts\" begins a line of a piece, and no line `piece` is before it");
}

TEST(ParseStatement, Order) {
  const StatedPiece piece = PieceOf("order overlap forward: rms_norm all_gather.n\norder overlap backward: add.x");
  EXPECT_THAT(piece.overlap_forward, ElementsAre("rms_norm", "all_gather.n"));
  EXPECT_THAT(piece.overlap_backward, ElementsAre("add.x"));
  EXPECT_EQ(ProblemsOfPiece("order overlap sideways: add"),
            "f:2:15: expected `forward` or `backward`, found \"sideways\"");
  EXPECT_EQ(ProblemsOfPiece("order overlap forward: fly.n"), "f:2:24: \"fly\" is no operation");
  EXPECT_EQ(ProblemsOfPiece("order overlap forward: add\norder overlap forward: add"),
            "f:3:15: this order is there twice");
}

TEST(ParseStatement, Needs) {
  const StatedNeed cut = PieceOf("needs tp x cp divides heads").needs.at(0);
  EXPECT_EQ(cut.relation, StatedNeed::Relation::kDivides);
  EXPECT_THAT(cut.axes, ElementsAre(Axis::kTp, Axis::kCp));
  EXPECT_EQ(cut.left.text(), "heads");
  const StatedNeed multiple = PieceOf("needs a / b multiple of c called the side of an image").needs.at(0);
  EXPECT_EQ(multiple.relation, StatedNeed::Relation::kMultiple);
  EXPECT_EQ(multiple.left.text(), "a / b");
  EXPECT_EQ(multiple.right->text(), "c");
  EXPECT_EQ(multiple.called, "the side of an image");
  EXPECT_EQ(PieceOf("needs a at most b").needs.at(0).relation, StatedNeed::Relation::kAtMost);
  EXPECT_EQ(PieceOf("needs tp divides heads or is a multiple").needs.at(0).relation,
            StatedNeed::Relation::kDividesOrMultiple);
  EXPECT_EQ(ProblemsOfPiece("needs a above b"), "f:2:9: expected `multiple` or `at`, found \"above\"");
  EXPECT_EQ(ProblemsOfPiece("needs tp divides heads or so"), "f:2:27: expected `is`, found \"so\"");
}

TEST(ParseStatement, NumbersOfModulesThatLackAConstant) {
  const ModelStatement statement =
      Of("constant final_norm flag else 1\nconstant heads int\nconstant normalized flag else heads > 1");
  EXPECT_EQ(statement.constants.at(0).otherwise->text(), "1");
  EXPECT_FALSE(statement.constants.at(1).otherwise.has_value());
  EXPECT_EQ(statement.NumberWithout("final_norm", {}), 1);
  EXPECT_TRUE(std::isnan(statement.NumberWithout("heads", {})));
  EXPECT_EQ(statement.NumberWithout("normalized", {{"heads", int64_t{2}}}), 1);
  EXPECT_EQ(statement.NumberWithout("normalized", {{"heads", int64_t{1}}}), 0);
  EXPECT_TRUE(std::isnan(statement.NumberWithout("normalized", {}))) << "of a damaged plan";
  EXPECT_TRUE(std::isnan(statement.NumberWithout("normalized", {{"heads", std::string("two")}})));
}

std::string NoSuchConstant(const std::string& name) {
  return absl::StrCat("the number of a module that lacks the constant is of \"", name,
                      "\", which is no constant before it that each such module has");
}

TEST(ParseStatement, ANumberIsOfConstantsBeforeItThatNoModuleLacks) {
  const auto of = [](const char* constant, const char* before) {
    return absl::StrCat("constant ", before, "\nconstant ", constant, "\nconstant last int");
  };
  EXPECT_EQ(ProblemsOf(of("a flag of E else b > 1", "b int of E")), "");
  EXPECT_EQ(ProblemsOf(of("a flag of E else b > 1", "b int")), "");
  EXPECT_EQ(ProblemsOf(of("a flag of E else b > 1", "b int of M")), "f:2:27: " + NoSuchConstant("b"));
  EXPECT_EQ(ProblemsOf(of("a flag else b > 1", "b int of M")), "f:2:22: " + NoSuchConstant("b"));
  EXPECT_EQ(ProblemsOf(of("a flag else b > 1", "b flag else 1")), "f:2:22: " + NoSuchConstant("b"));
  EXPECT_EQ(ProblemsOf(of("a flag else last > 1", "b int")), "f:2:22: " + NoSuchConstant("last"));
  EXPECT_EQ(ProblemsOf(of("a flag else a > 1", "b int")), "f:2:22: " + NoSuchConstant("a"));
}

TEST(ParseStatement, ConditionsAndPaddingOfWeights) {
  const StatedPiece piece = PieceOf(
      "when tp > 2: weight kv k [a, b] zeros\njoined kv v [a, b] zeros\nweight e e.weight [a, b] cut 0 padded zeros");
  EXPECT_EQ(piece.weights.at(0).when->text(), "tp > 2");
  EXPECT_EQ(piece.weights.at(1).when->text(), "tp > 2") << "joined to what has the condition";
  EXPECT_FALSE(piece.weights.at(2).when.has_value());
  EXPECT_FALSE(piece.weights.at(0).padded);
  EXPECT_TRUE(piece.weights.at(2).padded);
  EXPECT_EQ(ProblemsOfPiece("weight e e.weight [a, b] cut 1 padded zeros"),
            "f:2:32: `padded` is of a plain weight that is cut along dim 0");
  EXPECT_EQ(ProblemsOfPiece("joined kv v [a, b] zeros"),
            "f:2:1: a weight is joined to the one before it, and there is none");
}

TEST(ParseStatement, WhatIsJoinedHasTheFormOfWhatItIsJoinedTo) {
  using Form = StatedWeight::Form;
  const StatedPiece piece = PieceOf(
      "when tp > 2: experts e up [a, b] cut 0 zeros\njoined e gate [c, b] cut 0 zeros\njoined e third [a, b] zeros\n"
      "buffer f f [a] zeros\njoined f g [b] zeros\nweight h h [a] zeros");
  std::vector<std::tuple<Form, bool, std::string>> found;
  for (const StatedWeight& weight : piece.weights)
    found.emplace_back(weight.form, weight.joined, weight.when ? weight.when->text() : "");
  EXPECT_THAT(found,
              ElementsAre(std::tuple(Form::kExperts, false, "tp > 2"), std::tuple(Form::kExperts, true, "tp > 2"),
                          std::tuple(Form::kExperts, true, "tp > 2"), std::tuple(Form::kBuffer, false, ""),
                          std::tuple(Form::kBuffer, true, ""), std::tuple(Form::kWeight, false, "")));
  EXPECT_EQ(ProblemsOfPiece("weight e e [a] zeros\njoined e f [a] cut 0 padded zeros"),
            "f:3:22: `padded` is of a plain weight that is cut along dim 0");
}

TEST(ParseStatement, SharedSlots) {
  const StatedPiece piece = PieceOf("shared lm_head = embed.embeddings\nwhen tied: shared a.b = embed.c.d");
  ASSERT_EQ(piece.shared.size(), 2u);
  EXPECT_EQ(piece.shared[0].slot, "lm_head");
  EXPECT_EQ(piece.shared[0].of, "embeddings");
  EXPECT_FALSE(piece.shared[0].when);
  EXPECT_EQ(piece.shared[1].slot, "a.b");
  EXPECT_EQ(piece.shared[1].of, "c.d");
  EXPECT_EQ(piece.shared[1].when->text(), "tied");
  EXPECT_EQ(ProblemsOfPiece("shared lm_head = head.norm"),
            "f:2:18: \"head.norm\" is no slot of the embedding: expected `embed.` and its name");
  EXPECT_EQ(ProblemsOfPiece("shared lm_head embed.embeddings"), "f:2:16: expected `=`, found \"embed.embeddings\"");
  EXPECT_EQ(ProblemsOfPiece("shared lm_head = embed.embeddings [a]"),
            "f:2:35: expected the end of the line, found \"[\"");
}

TEST(ParseStatement, NeedsOfAnAxisAndConditionsOfNeeds) {
  using Relation = StatedNeed::Relation;
  const StatedPiece piece = PieceOf("needs pp at most 1\nwhen tied: needs cp at most most\nwhen a: needs tp divides b");
  EXPECT_EQ(piece.needs.at(0).relation, Relation::kAxisAtMost);
  EXPECT_THAT(piece.needs[0].axes, ElementsAre(Axis::kPp));
  EXPECT_EQ(piece.needs[0].right->text(), "1");
  EXPECT_FALSE(piece.needs[0].when);
  EXPECT_THAT(piece.needs.at(1).axes, ElementsAre(Axis::kCp));
  EXPECT_EQ(piece.needs[1].right->text(), "most");
  EXPECT_EQ(piece.needs[1].when->text(), "tied");
  EXPECT_EQ(piece.needs.at(2).relation, Relation::kDivides);
  EXPECT_EQ(piece.needs[2].when->text(), "a");
  EXPECT_EQ(ProblemsOfPiece("needs dp at most 1"), "f:2:7: no recipe says how large dp is");
  EXPECT_EQ(ProblemsOfPiece("needs pp divides a"), "f:2:7: no size is cut over pp");
  EXPECT_EQ(ProblemsOfPiece("needs pp at least 1"), "f:2:13: expected `most`, found \"least\"");
}

TEST(ParseStatement, ValuesForEachEncoder) {
  const StatedCompute compute = PieceOf("each a* = gelu rows*").computes.at(0);
  EXPECT_TRUE(compute.each);
  EXPECT_THAT(compute.outputs, ElementsAre("a*"));
  EXPECT_EQ(ProblemsOfPiece("a* = gelu rows*"),
            "f:2:1: a value for each encoder is made by a line that begins with `each`");
  EXPECT_EQ(ProblemsOfPiece("each a? = gelu rows*"),
            "f:2:6: \"a?\" is no name: a name is letters, digits, _ and dots, a letter in front");
}

TEST(ParseStatement, Computes) {
  const StatedCompute compute =
      PieceOf("when cp > 1: each y z = rms_norm x* [norm gate] eps norm_eps into $reals.{module}").computes.at(0);
  EXPECT_EQ(compute.kind, OpKind::kRmsNorm);
  EXPECT_THAT(compute.inputs, ElementsAre("x*"));
  EXPECT_THAT(compute.slots, ElementsAre("norm", "gate"));
  EXPECT_THAT(compute.outputs, ElementsAre("y", "z"));
  ASSERT_EQ(compute.settings.size(), 2u);
  EXPECT_EQ(compute.settings[0].attribute, "eps");
  EXPECT_EQ(compute.settings[0].text, "norm_eps");
  EXPECT_FALSE(compute.settings[0].formula.has_value());
  EXPECT_EQ(compute.FindSetting("into"), &compute.settings[1]);
  EXPECT_EQ(compute.settings[1].text, "$reals.{module}");
  const StatedCompute by_formula = PieceOf("y = gelu x [] erf (1 - (a + b)) eps (2)").computes.at(0);
  ASSERT_EQ(by_formula.settings.size(), 2u);
  EXPECT_EQ(by_formula.settings[0].formula->text(), "(1 - (a + b))");
  EXPECT_EQ(by_formula.settings[0].text, "(1 - (a + b))");
  EXPECT_EQ(by_formula.settings[1].formula->text(), "(2)");
  EXPECT_EQ(ProblemsOfPiece("y = gelu x [] erf (a) * (b)"),
            "f:2:19: a formula stands in brackets: expected ((a) * (b))");
  EXPECT_EQ(ProblemsOfPiece("y = gelu x [] erf (a"), "f:2:19: the bracket of the formula is not closed");
  ASSERT_TRUE(compute.when.has_value());
  EXPECT_EQ(compute.when->text(), "cp > 1");
  EXPECT_TRUE(compute.each);
  EXPECT_THAT(PieceOf("= accumulate loss").computes.at(0).outputs, IsEmpty());
  EXPECT_EQ(ProblemsOfPiece("y = fly x"), "f:2:5: \"fly\" is no operation");
}

TEST(ParseStatement, ALineStartsWithAWordThatItKnowsOrIsACompute) {
  EXPECT_EQ(ProblemsOf("strea [a] cut 0 over cp"),
            "f:1:1: \"strea\" begins a line of a piece, and no line `piece` is before it; did you mean `stream`?");
  EXPECT_EQ(ProblemsOf("can has_images twice"), "f:1:16: expected the end of the line, found \"twice\"");
}

// A bad line does not hide the next one.
TEST(ParseStatement, TellsAllProblemsOfAText) {
  EXPECT_EQ(ProblemsOf(R"(can has_images
constants hidden int
constant 2nd int
let q = heads *
    (size
piece embed
  inputs tokens
  x = embed_token tokens [embeddings]
  weight w w.weight [a, b] nomal [1]
  wheight w w.weight [a] ones
piece Mamba
  y = linear x [w
piece embed
)"),
            R"(f:2:1: "constants" begins a line of a piece, and no line `piece` is before it; did you mean `constant`?
f:3:10: "2nd" is no name: a name is letters, digits, _ and dots, a letter in front
f:5:5: the bracket of the formula is not closed
f:8:7: "embed_token" is no operation; did you mean `embed_tokens`?
f:9:28: "nomal" is no draw; did you mean `normal`?
f:10:3: no line begins with "wheight", and it is no compute, which has a `=`; did you mean `weight`?
f:11:7: "Mamba" is no piece: expected `embed`, `head` or the letter of a kind of layers
f:12:18: expected `]`, found the end of the line
f:13:7: the piece embed is there twice)");
}

// What others call the model is no part of the statement, but of the text.
TEST(ParseStatement, EndsWhereDialectsBegin) {
  const ModelStatement before = Of("let a = 1\ndialect toy\n  hidden = hidden_size\n  let b = 1\npiece embed\n");
  EXPECT_EQ(before.lets.size(), 1U);
  EXPECT_FALSE(before.embed.line);
  EXPECT_TRUE(before.whole);
}

TEST(ParseStatement, HasLimits) {
  EXPECT_EQ(ProblemsOf(std::string(65537, 'x')), "f:1:1: the text has more than 65536 bytes");
  std::string lines;
  for (int i = 0; i < 2002; ++i) absl::StrAppend(&lines, "let a", i, " = 1\n");
  EXPECT_EQ(ProblemsOf(lines), "f:2001:1: expected the end of the text: it may have 2000 lines, found \"let\"");
  std::string flags;
  for (int i = 0; i < 5; ++i) absl::StrAppend(&flags, "constant f", i, " flag else 1\n");
  EXPECT_EQ(ProblemsOf(flags), "f:5:23: a model has at most 4 flags that a module may lack");
  std::string weights;
  for (int i = 0; i < 257; ++i) absl::StrAppend(&weights, "weight w", i, " w", i, " [1] ones\n");
  EXPECT_EQ(ProblemsOfPiece(weights), "f:258:22: a piece has at most 256 weights");
}

}  // namespace
}  // namespace planwright
