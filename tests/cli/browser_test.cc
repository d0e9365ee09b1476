// The page of a plan in a real browser, without a window: it loads, complains of nothing, shows every rank, and nothing sticks out of its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"

namespace planwright {
namespace {

using nlohmann::json;
using testing::Installed;
using testing::ProgramResult;
using ::testing::HasSubstr;
using ::testing::Not;

// Put behind the page: measures it and writes what it found where --dump-dom shows it.
constexpr char kMeasure[] = R"js(<script>
window.addEventListener('load', () => {
  const out = {width: document.documentElement.scrollWidth, window: window.innerWidth, height: document.body.scrollHeight, outside: [], small: 0};
  for (const kind of ['rank', 'op', 'wire', 'curve']) out[kind] = document.querySelectorAll('svg .' + kind).length;
  for (const text of document.querySelectorAll('svg text')) {
    const box = text.getBBox(), svg = text.ownerSVGElement.viewBox.baseVal;
    if (box.x < -1 || box.y < -1 || box.x + box.width > svg.width + 1 || box.y + box.height > svg.height + 1) out.outside.push(text.textContent);
    const cell = text.parentNode.classList.contains('rank') || text.parentNode.classList.contains('op') ? text.parentNode.querySelector('rect').getBBox() : null;
    if (cell && (box.x < cell.x - 1 || box.x + box.width > cell.x + cell.width + 1)) out.outside.push('in a cell: ' + text.textContent);
  }
  out.background = getComputedStyle(document.body).backgroundColor;
  out.ink = getComputedStyle(document.body).color;
  out.sections = [...document.querySelectorAll('section')].map(s => s.id);
  const shown = document.createElement('pre');
  shown.id = 'measured';
  shown.textContent = JSON.stringify(out);
  document.body.appendChild(shown);
});
</script>)js";

class Browser : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      if (program_.empty() && Installed(name)) program_ = name;
    }
    if (program_.empty()) GTEST_SKIP() << "chromium is not installed";
  }

  json Measure(const std::string& recipe, const std::string& theme) {
    const ProgramResult made = Plan("show " + recipe + " --html " + folder_ + "/page.html");
    EXPECT_EQ(made.status, 0) << made.err;
    Write("measured.html", Read("page.html") + kMeasure);
    const ProgramResult shown = Shell("timeout 120 " + program_ + " --headless=new --no-sandbox --disable-gpu --user-data-dir=" + folder_ + "/profile --window-size=1280,1000 " +
                                      theme + " --enable-logging=stderr --virtual-time-budget=5000 --dump-dom file://" + folder_ + "/measured.html");
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.err, Not(HasSubstr("CONSOLE"))) << "the page makes the browser complain";
    const std::string start = "<pre id=\"measured\">";
    const size_t at = shown.out.find(start), end = shown.out.find("</pre>", at);
    if (at == std::string::npos) {
      ADD_FAILURE() << "nothing was measured: " << shown.err;
      return {};
    }
    std::string text = shown.out.substr(at + start.size(), end - at - start.size());
    for (const auto& [entity, character] : {std::pair<std::string, std::string>{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
      for (size_t i = text.find(entity); i != std::string::npos; i = text.find(entity, i + 1)) text.replace(i, entity.size(), character);
    }
    return json::parse(text);
  }

  std::string program_;
};

TEST_F(Browser, ShowsEightRanks) {
  const json page = Measure(std::string(PLANWRIGHT_SOURCE_DIR) + "/recipes/nemotron_moe_vlm_20l_mock_8r.yaml", "");
  EXPECT_EQ(page["rank"], 8);
  EXPECT_EQ(page["op"], 16);
  EXPECT_EQ(page["wire"], 2);
  EXPECT_LE(page["width"], page["window"]) << "the page scrolls sideways";
  EXPECT_GT(page["height"], 1500);
  EXPECT_EQ(page["outside"], json::array());
  EXPECT_THAT(page["sections"], ::testing::IsSupersetOf({"ranks", "groups", "bridges", "schedule", "budget", "model"}));
}

TEST_F(Browser, ShowsEightHundredRanks) {
  const json page = Measure(std::string(PLANWRIGHT_SOURCE_DIR) + "/recipes/nemotron_moe_vlm_54l_100n.yaml", "");
  EXPECT_EQ(page["rank"], 800);
  EXPECT_LE(page["width"], page["window"]);
  EXPECT_LT(page["height"], 12000) << "a page that a person can read";
  EXPECT_EQ(page["outside"], json::array());
}

TEST_F(Browser, IsDarkWhereTheSystemIs) {
  const std::string recipe = std::string(PLANWRIGHT_SOURCE_DIR) + "/recipes/nemotron_moe_vlm_tiny.yaml";
  const json light = Measure(recipe, "--blink-settings=preferredColorScheme=1"), dark = Measure(recipe, "--blink-settings=preferredColorScheme=0");
  EXPECT_NE(light["background"], dark["background"]);
  EXPECT_EQ(light["ink"], "rgb(20, 20, 15)");
  EXPECT_EQ(dark["ink"], "rgb(243, 242, 238)");
}

}  // namespace
}  // namespace planwright
