// The lines that say what recipes give of a model: what is read of each, and that one with a mistake is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Form = StatedKey::Form;
using Type = StatedKey::Type;

ModelStatement Read(const std::string& text) {
  ParsedStatement parsed = ParseStatement("f", text);
  EXPECT_EQ(ProblemsText(parsed.problems), "") << text;
  return std::move(parsed.statement);
}

StatedKey KeyOf(const std::string& line) {
  const ModelStatement statement = Read(line);
  EXPECT_EQ(statement.keys.size(), 1u) << line;
  return statement.keys.empty() ? StatedKey() : statement.keys.front();
}

// "f:LINE:COLUMN: MESSAGE", without the end of the line.
std::string Fault(const std::string& text) {
  const std::string problems = ProblemsText(ParseStatement("f", text).problems);
  return problems.substr(0, problems.find_last_not_of('\n') + 1);
}

TEST(ParseKeys, Kind) {
  EXPECT_EQ(Read("# of tests\nkind some_lm").kind, "some_lm");
  EXPECT_EQ(Fault("can has_images\nkind some_lm"), "f:2:1: `kind` is the first line of the text, and of no other");
  EXPECT_EQ(Fault("kind a\nkind b"), "f:2:1: `kind` is the first line of the text, and of no other");
}

TEST(ParseKeys, Layers) {
  const ModelStatement statement =
      Read("layer * attention opens: causal: attention\nlayer - mlp: MLP\nunbuilt G: gated delta net");
  ASSERT_EQ(statement.layer_kinds.size(), 2u);
  const StatedLayer& attention = *statement.FindLayer('*');
  EXPECT_EQ(attention.word, "attention");
  EXPECT_EQ(attention.title, "causal: attention");
  EXPECT_TRUE(attention.opens);
  EXPECT_EQ(statement.FindLayer("mlp")->letter, '-');
  EXPECT_FALSE(statement.FindLayer("mlp")->opens);
  EXPECT_EQ(statement.FindLayer('G'), nullptr);
  ASSERT_EQ(statement.unbuilt.size(), 1u);
  EXPECT_EQ(statement.unbuilt[0].letter, 'G');
  EXPECT_EQ(statement.unbuilt[0].title, "gated delta net");
  EXPECT_EQ(Fault("layer mamba: Mamba-2"), "f:1:7: \"mamba\" is not the letter of a kind of layers");
  EXPECT_EQ(Fault("layer M 2: Mamba-2"),
            "f:1:9: \"2\" is no name: a name is letters, digits, _ and dots, a letter in front");
  EXPECT_EQ(Fault("layer M mamba Mamba-2"), "f:1:15: expected `:`, found \"Mamba-2\"");
  EXPECT_EQ(Fault("layer M mamba:"), "f:1:15: expected what such layers are, found the end of the line");
}

TEST(ParseKeys, HowLayersAreGiven) {
  const ModelStatement pattern = Read("layers pattern: a letter for each, in quotes");
  EXPECT_EQ(pattern.repeated, "");
  EXPECT_EQ(pattern.keys.at(0).name, "pattern");
  EXPECT_TRUE(pattern.keys.at(0).required);
  const ModelStatement number = Read("layers *-: blocks");
  EXPECT_EQ(number.repeated, "*-");
  EXPECT_EQ(number.keys.at(0).name, "layers");
  EXPECT_EQ(number.keys.at(0).range, (NumberRange{1, 256}));
  const ModelStatement both = Read("layers *-: blocks\nlayers pattern such as *-*: letters");
  EXPECT_EQ(both.repeated, "*-");
  EXPECT_EQ(both.example, "*-*");
  EXPECT_EQ(both.keys.at(1).name, "pattern");
  EXPECT_EQ(Fault("layers V: blocks\nlayers VV: blocks"), "f:2:8: the text says twice what `layers` is");
  EXPECT_EQ(Fault("layers pattern: one\nlayers pattern: two"), "f:2:8: the text says twice what `pattern` is");
}

TEST(ParseKeys, Sections) {
  const StatedKey attention = KeyOf("section attention of *: sizes of * layers");
  EXPECT_EQ(attention.form, Form::kSection);
  EXPECT_EQ(attention.of, '*');
  EXPECT_FALSE(attention.required);
  EXPECT_EQ(attention.help, "sizes of * layers");
  EXPECT_TRUE(KeyOf("section projector required: layers").required);
  EXPECT_FALSE(KeyOf("section rope: positions").required);
  EXPECT_EQ(Fault("section a.b: sizes"), "f:1:9: a section is in no other one");
}

TEST(ParseKeys, KeysWithAChoice) {
  const StatedKey key = KeyOf("constant rope.factor real = 1.0 with rope.scaling linear or yarn: by how much");
  EXPECT_EQ(key.with, "rope.scaling");
  EXPECT_EQ(key.with_words, (std::vector<std::string>{"linear", "yarn"}));
  EXPECT_EQ(key.help, "by how much");
  EXPECT_EQ(Fault("constant rope.factor real with rope.scaling linear: by how much"),
            "f:1:27: a key that has an effect beside some words alone has a default");
  EXPECT_EQ(Fault("constant rope.factor real = 1.0 with rope.scaling: by how much"),
            "f:1:50: expected a word of the choice, found \":\"");
}

TEST(ParseKeys, Constants) {
  const StatedKey plain = KeyOf("constant hidden int: width: of the stream");
  EXPECT_EQ(plain.form, Form::kConstant);
  EXPECT_EQ(plain.name, "hidden");
  EXPECT_EQ(plain.type, Type::kInteger);
  EXPECT_EQ(plain.range, (NumberRange{1, 16777216}));
  EXPECT_TRUE(plain.required);
  EXPECT_EQ(plain.default_text, "");
  EXPECT_EQ(plain.help, "width: of the stream");
  const StatedKey real = KeyOf("constant norm_eps real from 1e-30 to 1e9 = 1.0e-5: epsilon");
  EXPECT_EQ(real.type, Type::kReal);
  EXPECT_EQ(real.range, (NumberRange{1e-30, 1e9}));
  EXPECT_EQ(real.default_text, "1.0e-5");
  EXPECT_FALSE(real.required);
  EXPECT_EQ(KeyOf("constant a real: a").range, (NumberRange{.low = 0, .high = 1e10, .above = true}));
  EXPECT_EQ(KeyOf("constant a real or 0: a").range, (NumberRange{0, 1e10}));
  EXPECT_EQ(KeyOf("constant a int or 0: a").range, (NumberRange{0, 16777216}));
  EXPECT_EQ(KeyOf("constant a real above 1 below 2: a").range, (NumberRange{1, 2, true, true}));
  EXPECT_EQ(KeyOf("constant a real or 0 from 1 to 2: a").range, (NumberRange{1, 2, false, false, true}));
  const ModelStatement flag = Read("constant top_k int given\nconstant normed flag else top_k > 1: whether");
  EXPECT_TRUE(flag.constants.at(0).given);
  EXPECT_FALSE(flag.constants.at(1).given);
  ASSERT_EQ(flag.keys.size(), 1u) << "what is given is no key";
  EXPECT_EQ(flag.keys[0].type, Type::kFlag);
  EXPECT_TRUE(flag.keys[0].range.any());
  EXPECT_FALSE(flag.keys[0].required) << "a module may lack it";
  EXPECT_EQ(KeyOf("constant tied flag = 0: whether").default_text, "0");
  EXPECT_TRUE(Read("constant crop flag").keys.empty()) << "a choice sets it";
}

TEST(ParseKeys, NumbersThatNoKeyHas) {
  EXPECT_EQ(Fault("constant a int from 1.5: a"), "f:1:21: \"1.5\" is no whole number from 0");
  EXPECT_EQ(Fault("constant a real from nan: a"), "f:1:22: \"nan\" is no number");
  EXPECT_EQ(Fault("constant a real to 1e11: a"), "f:1:20: the end is outside of 0 to 10000000000");
  EXPECT_EQ(Fault("constant a int to 16777217: a"), "f:1:19: the end is outside of 0 to 16777216");
  EXPECT_EQ(Fault("constant a int from 3 to 2: a"), "f:1:26: no number is in the range");
  EXPECT_EQ(Fault("constant a int from 3 = 2: a"), "f:1:25: the default is outside of the range");
  EXPECT_EQ(Fault("constant a int = 2.0: a"), "f:1:18: \"2.0\" is no whole number from 0");
  EXPECT_EQ(Fault("constant a int = 0: a"), "f:1:18: the default is outside of the range");
  EXPECT_EQ(Fault("constant a flag to 1: a"), "f:1:17: a flag has no range");
  EXPECT_EQ(Fault("constant a flag = true: a"), "f:1:19: \"true\" is no number");
  EXPECT_EQ(Fault("constant a flag = 2: a"), "f:1:19: \"2\" is neither 0 nor 1");
  EXPECT_EQ(Fault("constant a int = 2"), "f:1:19: expected `:`, found the end of the line");
  EXPECT_EQ(Fault("constant a int given: a"), "f:1:21: expected the end of the line, found \":\"");
}

TEST(ParseKeys, Choices) {
  const StatedKey key = KeyOf("choice positions resize 0, crop 1 = resize sets crop: how, or not");
  EXPECT_EQ(key.form, Form::kChoice);
  EXPECT_THAT(key.words, ElementsAre(Pair("resize", 0), Pair("crop", 1)));
  EXPECT_EQ(key.default_text, "resize");
  EXPECT_EQ(key.sets, "crop");
  EXPECT_EQ(key.help, "how, or not");
  EXPECT_FALSE(key.required);
  EXPECT_TRUE(KeyOf("choice positions resize 0, crop 1 sets crop: how").required);
  EXPECT_EQ(Fault("choice a bb 0, cc 1 = dd sets e: f"), "f:1:23: \"dd\" is no word of the choice");
  EXPECT_EQ(Fault("choice a linear 0, c 1 = liner sets e: f"),
            "f:1:26: \"liner\" is no word of the choice; did you mean `linear`?");
  EXPECT_EQ(Fault("choice a b 0, b 1 = b sets e: f"), "f:1:15: the word is there twice");
  EXPECT_EQ(Fault("choice a b 0 = b: f"), "f:1:17: expected `sets`, found \":\"");
  EXPECT_EQ(Fault("choice a b = b sets e: f"), "f:1:12: \"=\" is no number");
}

TEST(ParseKeys, NumbersThatAreNoConstant) {
  const StatedKey key = KeyOf("key imbalance real from 1 to 8: rows");
  EXPECT_EQ(key.form, Form::kNumber);
  EXPECT_EQ(key.type, Type::kReal);
  EXPECT_EQ(key.range, (NumberRange{1, 8}));
  EXPECT_FALSE(key.required);
  EXPECT_EQ(KeyOf("key a int or 0 = 0: a").default_text, "0");
  EXPECT_EQ(Fault("key a flag: a"), "f:1:7: expected `int` or `real`, found \"flag\"");
  EXPECT_EQ(Fault("key a int"), "f:1:10: expected `:`, found the end of the line");
  EXPECT_EQ(Fault("kee a int: a"),
            "f:1:1: \"kee\" begins a line of a piece, and no line `piece` is before it; did you mean `key`?");
}

// What is called otherwise elsewhere is not of the statement.
TEST(ParseKeys, TheTextEndsWhereDialectsBegin) {
  EXPECT_EQ(Fault("kind a\ndialect llama\n  no line of a statement\nkind b\n"), "");
  EXPECT_EQ(Fault("dialect llama\nkind"), "");
  EXPECT_THAT(Fault("kind a\ndialects\n"), HasSubstr("f:2:1: "));
}

// ---- What lines must keep together.

const char kSound[] = R"(kind some_lm
layer M mixer: mixer
layer - mlp: MLP
unbuilt G: gated delta net
layers pattern: a letter for each
constant hidden int: width
section mixer of M: sizes of mixers
constant mixer.heads int of M: heads
constant act flag
choice activation gelu 0, relu 1 = gelu sets act: function
piece M
piece -
)";

// The problems of this text with `now` in place of `was`, in which all of them are.
std::string ProblemsWith(const std::string& was, const std::string& now) {
  std::string text = kSound;
  const size_t at = text.find(was);
  EXPECT_NE(at, text.npos) << was;
  const ParsedStatement parsed = ParseStatement("f", text.replace(at, was.size(), now));
  EXPECT_EQ(ProblemsText(parsed.problems), "");
  return ProblemsText(StatementProblems(parsed.statement));
}

TEST(KeyRules, TellNothingOfWhatIsSound) {
  const std::string problems = ProblemsWith("", "");
  for (const char* word : {"layer has", "nothing settles", "section", "choice", "twice", "`kind`", "`layers`"})
    EXPECT_THAT(problems, Not(HasSubstr(word)));
}

struct BrokenKeys {
  const char* was;
  const char* now;
  const char* problem;
};

const BrokenKeys kBrokenKeys[] = {
    {"kind some_lm\n", "", "f:1:1: the statement has no line `kind`"},
    {"layer - mlp: MLP\n", "", "f:11:7: no kind of layers has the letter -"},
    {"piece -\n", "", "f:3:7: the statement has no piece -"},
    {"unbuilt G", "unbuilt M", "f:4:9: two kinds of layers have the letter M"},
    {"layer - mlp", "layer - mixer", "f:3:9: \"mixer\" is another word of `recompute` already"},
    {"layer - mlp", "layer - full", "f:3:9: \"full\" is another word of `recompute` already"},
    {"unbuilt G", "unbuilt /", "f:4:9: `/` divides patterns, and is no layer"},
    {"layers pattern: a letter for each\n", "", "f:1:1: the statement has no line `layers`"},
    {"layers pattern", "layers M-X", "f:5:8: no kind of layers has the letter X"},
    {"section mixer of M", "section mixer of X", "f:7:18: no kind of layers has the letter X"},
    {"section mixer of M", "section mixer",
     "f:8:10: the constant mixer.heads and its section are not of the same kind"},
    {"mixer.heads int of M", "mixer.heads int", "f:8:10: the constant mixer.heads and its section are not of the same"},
    {"constant hidden int", "constant hidden int of M", "f:6:10: the constant hidden and its section are not of the"},
    {"constant mixer.heads", "constant mixed.heads",
     "f:8:10: no line before it is the section mixed; did you mean `mixer`?"},
    {"constant hidden int: width", "constant hidden int", "f:6:10: nothing settles the constant hidden"},
    {"choice activation gelu 0, relu 1 = gelu sets act: function\n", "", "f:9:10: nothing settles the constant act"},
    {"constant act flag", "constant act flag: key", "f:9:10: the constant act is a key, and a choice sets it"},
    {"sets act", "sets acts", "f:10:46: there is no constant acts; did you mean `act`?"},
    {"constant act flag", "constant act real", "f:10:46: act is a real number, which no choice sets"},
    {"constant act flag", "constant act flag given", "f:10:46: act is given, which no choice sets"},
    {"constant act flag", "constant act int", "f:10:19: the number of gelu is outside of the constant act"},
    {"relu 1", "relu 2", "f:10:27: the number of relu is outside of the constant act"},
    {"piece M\n", "choice more a 0 = a sets act: more\npiece M\n", "f:11:26: two choices set the constant act"},
    {"choice activation", "choice hidden", "f:10:8: the key hidden is there twice"},
    {"piece M\n", "constant slope int = 1 with activation relu or gelo: slope\npiece M\n",
     "f:11:48: the choice activation has no word gelo; did you mean `gelu`?"},
    {"constant act flag\n", "constant slope int = 1 with activation relu: slope\nconstant act flag\n",
     "f:9:29: no line before it is the choice activation"},
    {"choice activation", "choice kind", "f:10:8: the key kind is there twice"},
};

TEST(KeyRules, TellWhatDoesNotFit) {
  for (const BrokenKeys& broken : kBrokenKeys)
    EXPECT_THAT(ProblemsWith(broken.was, broken.now), HasSubstr(broken.problem));
}

}  // namespace
}  // namespace planwright
