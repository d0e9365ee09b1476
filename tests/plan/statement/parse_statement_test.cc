// Each line of a statement by itself: what is read of it, and that one with a mistake is none.
#include "planner/plan/statement/parse_statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

ModelStatement Of(const std::string& line) { return ParseStatement("kind", line); }
StatedPiece PieceOf(const std::string& line) { return ParseStatement("kind", "piece M\n" + line).layers.at('M'); }

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
  EXPECT_DEATH(Of("can fly"), "can fly");
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
  EXPECT_DEATH(Of("stream [a, b] cut 2 over cp"), "cut 2");
  EXPECT_DEATH(Of("stream [a, b] cut 0 over width"), "width");
  EXPECT_DEATH(Of("stream [a] cut 0 over cp\nstream [b] cut 0 over cp"), "stream");
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
  EXPECT_DEATH(Of("given a [1]\ngiven a [2]"), "given a");
}

TEST(ParseStatement, Gathered) {
  EXPECT_THAT(Of("gathered tokens lane_tokens").gathered, ElementsAre(Pair("tokens", "lane_tokens")));
  EXPECT_DEATH(Of("gathered tokens"), "gathered");
}

TEST(ParseStatement, Size) {
  const ModelStatement statement = Of("size rows = patches / merged");
  ASSERT_EQ(statement.sizes.size(), 1u);
  EXPECT_EQ(statement.sizes[0].first, "rows");
  EXPECT_EQ(statement.sizes[0].second.text(), "patches / merged");
  EXPECT_DEATH(Of("size rows patches"), "size rows");
}

TEST(ParseStatement, CountsSplitAndProbe) {
  EXPECT_EQ(PieceOf("counts token_counts").counts, "token_counts");
  EXPECT_THAT(PieceOf("split qkv query kv").parts, ElementsAre(Pair("qkv", ElementsAre("query", "kv"))));
  EXPECT_DEATH(PieceOf("split qkv a b\nsplit qkv c d"), "split qkv");
  const std::vector<StatedProbe> probes = PieceOf("probe y layer{layer}.out\nwhen tp > 1: probe z part").probes;
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(probes[0].value, "y");
  EXPECT_EQ(probes[0].name, "layer{layer}.out");
  EXPECT_FALSE(probes[0].when.has_value());
  EXPECT_EQ(probes[1].value, "z");
  EXPECT_EQ(probes[1].when->text(), "tp > 1");
  EXPECT_DEATH(PieceOf("probe y"), "probe");
  EXPECT_DEATH(Of("counts token_counts"), "counts token_counts") << "behind no piece";
}

TEST(ParseStatement, Order) {
  const StatedPiece piece = PieceOf("order overlap forward: rms_norm all_gather.n\norder overlap backward: add.x");
  EXPECT_THAT(piece.overlap_forward, ElementsAre("rms_norm", "all_gather.n"));
  EXPECT_THAT(piece.overlap_backward, ElementsAre("add.x"));
  EXPECT_DEATH(PieceOf("order overlap sideways: add"), "sideways");
  EXPECT_DEATH(PieceOf("order overlap forward: fly.n"), "fly");
  EXPECT_DEATH(PieceOf("order overlap forward: add\norder overlap forward: add"), "order");
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
  EXPECT_DEATH(PieceOf("needs a above b"), "above");
  EXPECT_DEATH(PieceOf("needs tp divides heads or so"), "or so");
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

TEST(ParseStatement, ANumberIsOfConstantsBeforeItThatNoModuleLacks) {
  const auto of = [](const char* constant, const char* before) {
    return absl::StrCat("constant ", before, "\nconstant ", constant, "\nconstant last int");
  };
  EXPECT_NO_THROW(Of(of("a flag of E else b > 1", "b int of E")));
  EXPECT_NO_THROW(Of(of("a flag of E else b > 1", "b int")));
  EXPECT_DEATH(Of(of("a flag of E else b > 1", "b int of M")), "b > 1");
  EXPECT_DEATH(Of(of("a flag else b > 1", "b int of M")), "b > 1");
  EXPECT_DEATH(Of(of("a flag else b > 1", "b flag else 1")), "b > 1");
  EXPECT_DEATH(Of(of("a flag else last > 1", "b int")), "last > 1");
  EXPECT_DEATH(Of(of("a flag else a > 1", "b int")), "a > 1");
}

TEST(ParseStatement, ConditionsAndPaddingOfWeights) {
  const StatedPiece piece = PieceOf(
      "when tp > 2: weight kv k [a, b] zeros\njoined kv v [a, b] zeros\nweight e e.weight [a, b] cut 0 padded zeros");
  EXPECT_EQ(piece.weights.at(0).when->text(), "tp > 2");
  EXPECT_EQ(piece.weights.at(1).when->text(), "tp > 2") << "joined to what has the condition";
  EXPECT_FALSE(piece.weights.at(2).when.has_value());
  EXPECT_FALSE(piece.weights.at(0).padded);
  EXPECT_TRUE(piece.weights.at(2).padded);
  EXPECT_DEATH(PieceOf("weight e e.weight [a, b] cut 1 padded zeros"), "padded");
  EXPECT_DEATH(PieceOf("joined kv v [a, b] zeros"), "joined");
}

TEST(ParseStatement, Computes) {
  const StatedCompute compute =
      PieceOf("when cp > 1: each y z = rms_norm x* [norm gate] eps norm_eps into $reals.{module}").computes.at(0);
  EXPECT_EQ(compute.kind, OpKind::kRmsNorm);
  EXPECT_THAT(compute.inputs, ElementsAre("x*"));
  EXPECT_THAT(compute.slots, ElementsAre("norm", "gate"));
  EXPECT_THAT(compute.outputs, ElementsAre("y", "z"));
  EXPECT_THAT(compute.settings, ElementsAre(Pair("eps", "norm_eps"), Pair("into", "$reals.{module}")));
  ASSERT_TRUE(compute.when.has_value());
  EXPECT_EQ(compute.when->text(), "cp > 1");
  EXPECT_TRUE(compute.each);
  EXPECT_THAT(PieceOf("= accumulate loss").computes.at(0).outputs, IsEmpty());
  EXPECT_DEATH(PieceOf("y = fly x"), "fly");
}

TEST(ParseStatement, ALineStartsWithAWordThatItKnowsOrIsACompute) {
  EXPECT_DEATH(Of("strea [a] cut 0 over cp"), "strea");
  EXPECT_DEATH(Of("can has_images twice"), "twice");
}

}  // namespace
}  // namespace planwright
