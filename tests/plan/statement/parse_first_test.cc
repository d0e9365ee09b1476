// The lines that say what a first recipe has for an encoder: what is read of each, and that one with a mistake is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planner/plan/statement/parse_statement.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

const std::string kBegin = R"(kind some_vit
can has_images
layer V block: block
layer W mixer: mixer
layers V: blocks
constant hidden int: width
constant shuffle int to 64 = 2: side
constant table int else hidden to 4096: side
constant width int of W: width
constant eps real = 1e-6: epsilon
constant bias flag = 0: whether
choice norm layer 1, none 0 = layer sets normed: norm
constant normed flag
section projector required: layers
constant projector.hidden int from 8: width
constant output.hidden int given
)";  // 16 lines

ModelStatement ReadFirst(const std::string& line) {
  ParsedStatement parsed = ParseStatement("f", kBegin + line);
  EXPECT_EQ(ProblemsText(parsed.problems), "") << line;
  return std::move(parsed.statement);
}

// "COLUMN: MESSAGE" of the last line of these.
std::string FirstFault(const std::string& lines) {
  const std::string problems = ProblemsText(ParseStatement("f", kBegin + lines).problems);
  const size_t column = problems.find(':', 2);
  return problems.substr(column + 1, problems.find_last_not_of('\n') - column);
}

TEST(ParseFirst, Module) {
  EXPECT_EQ(ReadFirst("").first_module, "vision_encoder");
  EXPECT_EQ(ReadFirst("first module some_encoder").first_module, "some_encoder");
  EXPECT_EQ(FirstFault("first module"), "13: expected the name of the module, found the end of the line");
  EXPECT_EQ(FirstFault("first module a.b"), "14: the name of a module has no dot");
  EXPECT_EQ(FirstFault("first module language"), "14: `language` is the module of the language model");
  const std::string longest(64, 'a');
  EXPECT_EQ(ReadFirst("first module " + longest).first_module, longest);
  EXPECT_EQ(FirstFault("first module a" + longest), "14: the name of a module has at most 64 letters");
  for (const std::string word : {"null", "true", "Yes", "NO", "off", "n", "nan"})
    EXPECT_EQ(FirstFault("first module " + word),
              "14: \"" + word + "\" is another word of YAML, and no name in a recipe");
  EXPECT_EQ(FirstFault("first module a\nfirst module b"), "7: the name of the module is there twice");
  EXPECT_EQ(
      FirstFault("first modul a"),
      "7: \"modul\" is neither a choice nor a whole number that a line before it says of each recipe; did you mean "
      "`module`?");
}

TEST(ParseFirst, Images) {
  EXPECT_FALSE(ReadFirst("").first_images);
  const StatedImages plain = *ReadFirst("first images resize bilinear grid ceil").first_images;
  EXPECT_EQ(plain.resize, "bilinear");
  EXPECT_EQ(plain.grid, "ceil");
  EXPECT_EQ(plain.least_pixels, 0);
  EXPECT_FALSE(plain.processor);
  const StatedImages all =
      *ReadFirst("first images resize bicubic grid smart_resize from 4096 or processor").first_images;
  EXPECT_EQ(all.least_pixels, 4096);
  EXPECT_TRUE(all.processor);
  EXPECT_EQ(FirstFault("first images bicubic"), "14: expected `resize`, found \"bicubic\"");
  EXPECT_EQ(FirstFault("first images resize bicubc grid ceil"),
            "21: \"bicubc\" is no word of data.resize; did you mean `bicubic`?");
  EXPECT_EQ(FirstFault("first images resize bicubic grid squares"),
            "34: \"squares\" is no word of data.grid; did you mean `square`?");
  EXPECT_EQ(FirstFault("first images resize bicubic grid square from 64"),
            "41: squares have one size, and no least one");
  EXPECT_EQ(FirstFault("first images resize bicubic grid ceil from 0"), "44: an image has a pixel at least");
  EXPECT_EQ(FirstFault("first images resize bicubic grid ceil or"),
            "41: expected `processor`, found the end of the line");
  EXPECT_THAT(FirstFault("first images resize bicubic grid ceil\nfirst images resize bicubic grid ceil"),
              HasSubstr("7: how images are made is there twice"));
}

TEST(ParseFirst, Keys) {
  const ModelStatement both = ReadFirst("first projector.hidden is 4 * shuffle * hidden\nfirst norm is none");
  ASSERT_EQ(both.firsts.size(), 2U);
  EXPECT_EQ(both.firsts[0].key, "projector.hidden");
  EXPECT_EQ(both.firsts[0].formula->text(), "4 * shuffle * hidden");
  EXPECT_EQ(both.firsts[1].key, "norm");
  EXPECT_FALSE(both.firsts[1].formula);
  EXPECT_EQ(both.firsts[1].word, "none");
  EXPECT_EQ(ReadFirst("first shuffle is output.hidden").firsts.size(), 1U);
  for (const char* other : {"hiden", "layers", "projector", "table", "width", "eps", "bias", "output.hidden"})
    EXPECT_THAT(FirstFault(std::string("first ") + other + " is 1"),
                HasSubstr("is neither a choice nor a whole number"));
  EXPECT_EQ(FirstFault("first norm is nonee"), "15: \"nonee\" is no word of the choice norm; did you mean `none`?");
  EXPECT_EQ(FirstFault("first norm none"), "12: expected `is`, found \"none\"");
  EXPECT_EQ(FirstFault("first shuffle is 65"), "18: the number is outside of the range of the key");
  EXPECT_EQ(FirstFault("first shuffle is 1 / 2"), "18: the formula is no whole number");
  for (const char* name : {"table", "width", "eps", "shuffle", "tp", "projector"})
    EXPECT_EQ(FirstFault(std::string("first shuffle is 2 * ") + name),
              std::string("18: \"") + name +
                  "\" is neither output.hidden nor another whole number that a line before it says of each recipe");
  EXPECT_EQ(ReadFirst("first shuffle is 64 / 49 * 49").firsts.size(), 1U) << "64, and not a little less";
  EXPECT_EQ(FirstFault("first shuffle is 1 / (2 - 2)"), "18: the formula is no whole number");
  EXPECT_EQ(FirstFault("first shuffle is 7 / 2"), "18: the formula is no whole number");
  EXPECT_EQ(FirstFault("first shuffle is 4\nfirst projector.hidden is 8 * shuffle"),
            "27: \"shuffle\" is what another line `first` says");
  EXPECT_EQ(FirstFault("first projector.hidden is 8 * shuffle\nfirst shuffle is 4"),
            "7: the formula of another line `first` is over shuffle");
  EXPECT_EQ(FirstFault("first norm is none\nfirst norm is none"), "7: the key is there twice");
}

TEST(ParseFirst, IsOfEncodersAlone) {
  EXPECT_EQ(ProblemsText(ParseStatement("f", "kind a\ncan carries_loss\nfirst module b\n").problems),
            "f:3:1: a first recipe asks this of a model that has_images alone\n");
}

}  // namespace
}  // namespace planwright
