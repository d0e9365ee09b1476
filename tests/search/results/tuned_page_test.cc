// The page of `plan tune`: well-formed, complete by itself, escaped, and nothing is drawn outside a drawing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "planner/base/text/text.h"
#include "tests/search/results/found_layouts.h"
#include "tests/views/show/markup_reader.h"

namespace planwright {
namespace {

using testing::Element;
using testing::FoundLayouts;
using ::testing::HasSubstr;
using testing::MarkupReader;
using ::testing::Not;

// Squares of the drawings, which stand for layouts.
int Checked(const std::vector<Found>& found) {
  const std::string page = FoundPage("a <recipe>", found);
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, HasSubstr("a &lt;recipe&gt;"));
  int squares = 0;
  for (const Element& element : MarkupReader(page).Read()) {
    squares += element.tag == "rect";
    if (element.svg.empty() || !element.attributes.contains("x")) continue;
    std::istringstream box(element.svg);
    double left = 0, top = 0, width = 0, height = 0;
    box >> left >> top >> width >> height;
    EXPECT_GE(std::stod(element.attributes.at("x")), 0);
    EXPECT_LE(std::stod(element.attributes.at("x")), width);
    EXPECT_GE(std::stod(element.attributes.at("y")), 0);
    EXPECT_LE(std::stod(element.attributes.at("y")), height);
  }
  return squares;
}

TEST(TunedPage, DrawsEveryLayout) {
  EXPECT_EQ(Checked({FoundLayouts()}), 3 + 3 + 1);
  const std::string page = FoundPage("r", {FoundLayouts()});
  EXPECT_THAT(page, HasSubstr("first &lt;layout&gt;"));
  EXPECT_THAT(page, HasSubstr("<b>3.45 x</b>")) << "6.9 s / 2 s";
  EXPECT_THAT(page, HasSubstr("curve m0l")) << "the frontier";
  EXPECT_THAT(page, Not(HasSubstr("id=\"scaling\"")));
}

TEST(TunedPage, ComparesNumbersOfGpus) {
  Found none;
  none.result.gpus = 8, none.result.problem = "nothing <fits>";
  none.problems.push_back({DiagnosticKind::kBrokenRule, Severity::kError, "what is <wrong>", {}, ""});
  EXPECT_EQ(Checked({none, FoundLayouts()}), 7);
  const std::string page = FoundPage("r", {none, FoundLayouts()});
  EXPECT_THAT(page, HasSubstr("id=\"scaling\""));
  EXPECT_THAT(page, HasSubstr("nothing &lt;fits&gt;"));
  EXPECT_THAT(page, HasSubstr(Cat(KindNumber(DiagnosticKind::kBrokenRule), ": what is &lt;wrong&gt;")));
}

// The page, the text and JSON tell of one gap.
TEST(TunedPage, HasTheGap) {
  Found found = FoundLayouts();
  const auto tile = [&] { return FoundPage("r", {found}); };
  EXPECT_THAT(tile(), HasSubstr("<b>5.0 %</b><span>gap to the optimum, at most"));
  found.result.gap = std::numeric_limits<double>::infinity();
  EXPECT_THAT(tile(), HasSubstr("<b>unknown</b><span>gap to the optimum, at most"));
  EXPECT_THAT(FoundPage("r", {found, FoundLayouts()}), HasSubstr("<td>unknown</td>")) << "of the table, too";
}

TEST(TunedPage, NamesWhatWasNotSearched) {
  Found ended;
  ended.searched = false, ended.result.gpus = 528, ended.result.problem = "It was not searched.";
  EXPECT_EQ(Checked({FoundLayouts(), ended}), 7);
  EXPECT_THAT(FoundPage("r", {FoundLayouts(), ended}), HasSubstr("id=\"gpus528\""));
}

TEST(TunedPage, DrawsOneLayoutAlone) {
  Found found = FoundLayouts();
  found.result.best.resize(1), found.result.frontier.clear(), found.result.given.reset();
  EXPECT_EQ(Checked({found}), 1);
}

}  // namespace
}  // namespace planwright
