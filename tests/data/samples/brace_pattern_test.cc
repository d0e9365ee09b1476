// Names with braces are counted before they are made, and are made one by one.
#include "planner/data/samples/brace_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

std::vector<std::string> FirstNames(const std::string& text, size_t most) {
  std::vector<std::string> names;
  BracePattern::Parse(text)->EachName([&](const std::string& name) {
    names.push_back(name);
    return names.size() < most;
  });
  return names;
}

std::string ProblemOf(const std::string& text) { return std::string(BracePattern::Parse(text).status().message()); }

TEST(BracePattern, MakesNamesInOrder) {
  EXPECT_THAT(FirstNames("plain", 9), ElementsAre("plain"));
  EXPECT_THAT(FirstNames("", 9), ElementsAre(""));
  EXPECT_THAT(FirstNames("a{8..10}b", 9), ElementsAre("a8b", "a9b", "a10b"));
  EXPECT_THAT(FirstNames("{x,y{1..2}z,}{a,b}", 9), ElementsAre("xa", "xb", "y1za", "y1zb", "y2za", "y2zb", "a", "b"));
  EXPECT_THAT(FirstNames("a,b", 9), ElementsAre("a,b")) << "a comma outside of braces is a letter";
}

// The work is that of the names that are taken, however many there are.
TEST(BracePattern, CountsWithoutMakingANameAndStopsWhenAsked) {
  std::string wide;
  for (int i = 0; i < 16; ++i) wide += "{000000000..999999999}";
  const absl::StatusOr<BracePattern> pattern = BracePattern::Parse(wide);
  ASSERT_TRUE(pattern.ok());
  EXPECT_EQ(pattern->count(), BracePattern::kMostCounted);
  EXPECT_EQ(pattern->longest(), 16U * 9);
  EXPECT_EQ(FirstNames(wide, 3).back(), std::string(16 * 9 - 1, '0') + "2");
  EXPECT_EQ(BracePattern::Parse("s{0..9}{0..9}{0..9}{0..9}{0..9}{0..9}")->count(), 1'000'000);
  EXPECT_EQ(BracePattern::Parse("{a,b{1..3}}{x,y}")->count(), 8);
  EXPECT_EQ(BracePattern::Parse("{a,b{1..30}}{x,yyyy}")->longest(), 7U);
  // A name is never put together from a long list before it is taken.
  const std::string many = "{" + std::string(50'000, ',') + "}" + std::string(50'000, 'x');
  EXPECT_EQ(BracePattern::Parse(many)->count(), 50'001);
  EXPECT_EQ(FirstNames(many, 1).front().size(), 50'000U);
}

TEST(BracePattern, SaysWhatIsWrong) {
  EXPECT_EQ(ProblemOf("a{1..2"), "a { without its }");
  EXPECT_EQ(ProblemOf("a{1,"), "a { without its }");
  EXPECT_EQ(ProblemOf("{"), "a { without its }");
  EXPECT_EQ(ProblemOf("{a,{b}"),
            "{b} is neither a range of whole numbers that ascends, such as {000..099}, nor a list "
            "{a,b}");
  EXPECT_EQ(ProblemOf("a}{1..2}"), "a } without its {");
  EXPECT_THAT(ProblemOf("{}"), StartsWith("{} is neither"));
  EXPECT_THAT(ProblemOf("{2..1}"), StartsWith("{2..1} is neither"));
  EXPECT_THAT(ProblemOf("{1..}"), StartsWith("{1..} is neither"));
  EXPECT_THAT(ProblemOf("{0..9999999999999999999}"), StartsWith("{0..9999999999999999999} is neither"));
  EXPECT_EQ(ProblemOf("{" + std::string(100, 'x') + "}").substr(0, 65), "{" + std::string(60, 'x') + "...}");
  std::string deep, beside;
  for (int i = 0; i < 17; ++i) deep += "{a,", beside += "{a,b}";
  EXPECT_EQ(ProblemOf(deep + std::string(17, '}')), "more than 16 braces");
  EXPECT_EQ(ProblemOf(beside), "more than 16 braces");
  EXPECT_EQ(ProblemOf(std::string(100'000, '{')), "more than 16 braces");
  // Braces of which a name has one.
  std::string apart = "{";
  for (int i = 0; i < 40; ++i) apart += "{1..2},";
  EXPECT_EQ(BracePattern::Parse(apart + "x}")->count(), 81);
}

}  // namespace
}  // namespace planwright
