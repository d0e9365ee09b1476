// Opens the pages of a plan and of a run in a real browser without a window. They must load without complaints and show
// every rank and curve, and no text may overlap another or leave its box.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::Installed;
using ::testing::Not;
using testing::ProgramResult;

// A script that is added to the page. It measures the page and writes the result where --dump-dom prints it.
constexpr char kMeasure[] = R"js(<script>
function luminance(color) {
  const linear = color.match(/[\d.]+/g).slice(0, 3)
                      .map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}
function opaque(color) { return color && !/, 0\)$/.test(color) && color !== 'none'; }
// The background of a text: that of the nearest element that has one.
function ground(element) {
  for (; element; element = element.parentElement) {
    const color = getComputedStyle(element).backgroundColor;
    if (opaque(color)) return color;
  }
  return 'rgb(255, 255, 255)';
}
function measureDrawing(svg, out) {
  const boxes = [];
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBBox(), size = svg.viewBox.baseVal;
    const beyond = (inner, outer) => inner.x < outer.x - 1 || inner.x + inner.width > outer.x + outer.width + 1;
    if (beyond(box, size) || box.y < -1 || box.y + box.height > size.height + 1) out.outside.push(text.textContent);
    const kind = ['rank', 'op', 'part', 'action'].find(kind => text.parentNode.classList.contains(kind));
    const rect = kind ? text.parentNode.querySelector('rect') : null;
    if (rect && beyond(box, rect.getBBox())) out.outside.push('in a ' + kind + ': ' + text.textContent);
    const behind = rect ? getComputedStyle(rect).fill : ground(svg);
    const ratio = contrast(getComputedStyle(text).fill, behind);
    if (ratio < 4.5) out.faint.push(text.textContent + ' ' + ratio.toFixed(2));
    for (const other of boxes) {
      const across = box.x < other.box.x + other.box.width - 1 && other.box.x < box.x + box.width - 1;
      const down = box.y < other.box.y + other.box.height - 3 && other.box.y < box.y + box.height - 3;
      if (across && down) out.overlaps.push(other.text + ' | ' + text.textContent);
    }
    boxes.push({box, text: text.textContent});
  }
}
window.addEventListener('load', () => {
  const out = {width: document.documentElement.scrollWidth, window: window.innerWidth,
               height: document.body.scrollHeight, outside: [], overlaps: [], faint: [],
               loaded: performance.getEntriesByType('resource').map(entry => entry.name)};
  for (const kind of ['rank', 'op', 'action', 'wire', 'curve', 'memory', 'part', 'worst', 'limit']) {
    out[kind] = document.querySelectorAll('svg .' + kind).length;
  }
  for (const svg of document.querySelectorAll('svg')) measureDrawing(svg, out);
  for (const element of document.querySelectorAll('h1, h2, h3, p, th, td, summary, a, b, span, code')) {
    if (!element.textContent.trim() || element.checkVisibility && !element.checkVisibility()) continue;
    const ratio = contrast(getComputedStyle(element).color, ground(element));
    if (ratio < 4.5) out.faint.push(element.textContent.slice(0, 40) + ' ' + ratio.toFixed(2));
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

constexpr char kLight[] = "--blink-settings=preferredColorScheme=1",
               kDark[] = "--blink-settings=preferredColorScheme=0";

class Browser : public testing::PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      if (program_.empty() && Installed(name)) program_ = name;
    }
    if (program_.empty()) GTEST_SKIP() << "chromium is not installed";
  }

  // `recipe`: with its overrides.
  json Measure(const std::string& recipe, const std::string& theme = kLight, int width = 1280) {
    return MeasurePage("show " + InSource("recipes/") + recipe, theme, width);
  }
  // `command`: of `plan`, without --html. Checks what must hold for every page.
  json MeasurePage(const std::string& command, const std::string& theme = kLight, int width = 1280) {
    const ProgramResult made = Plan(command + " --html " + folder_ + "/page.html");
    EXPECT_EQ(made.status, 0) << made.err;
    Write("measured.html", Read("page.html") + kMeasure);
    const ProgramResult shown =
        Shell("timeout 600 " + program_ + " --headless=new --no-sandbox --disable-gpu --user-data-dir=" + folder_ +
              "/profile --window-size=" + std::to_string(width) + ",1000 " + theme +
              " --enable-logging=stderr --virtual-time-budget=5000 --dump-dom file://" + folder_ + "/measured.html");
    EXPECT_EQ(shown.status, 0) << shown.err;
    EXPECT_THAT(shown.err, Not(HasSubstr("CONSOLE"))) << "the page makes the browser complain";
    const std::string start = "<pre id=\"measured\">";
    const size_t at = shown.out.find(start), end = shown.out.find("</pre>", at);
    if (at == std::string::npos) {
      ADD_FAILURE() << "nothing was measured: " << shown.err;
      return {};
    }
    std::string text = shown.out.substr(at + start.size(), end - at - start.size());
    for (const auto& [entity, character] :
         {std::pair<std::string, std::string>{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
      for (size_t i = text.find(entity); i != std::string::npos; i = text.find(entity, i + 1))
        text.replace(i, entity.size(), character);
    }
    const json page = json::parse(text);
    EXPECT_LE(page["width"], page["window"]) << "the page scrolls sideways";
    EXPECT_EQ(page["outside"], json::array());
    EXPECT_EQ(page["overlaps"], json::array());
    EXPECT_EQ(page["faint"], json::array()) << "texts of a contrast below 4.5";
    EXPECT_EQ(page["loaded"], json::array()) << "the page asks for something beside itself";
    return page;
  }

  std::string program_;
};

TEST_F(Browser, ShowsEightRanks) {
  const json page = Measure("nemotron_moe_vlm_20l_mock_8r.yaml");
  EXPECT_EQ(page["rank"], 8);
  EXPECT_EQ(page["op"], 16);
  EXPECT_EQ(page["action"], 16);
  EXPECT_EQ(page["wire"], 2);
  EXPECT_EQ(page["memory"], 4) << "a bar for each role";
  EXPECT_EQ(page["limit"], 4);
  EXPECT_GT(page["height"], 1500);
  EXPECT_THAT(page["sections"],
              ::testing::IsSupersetOf({"ranks", "groups", "bridges", "schedule", "budget", "model", "memory"}));
}

TEST_F(Browser, ShowsEightHundredRanks) {
  const json page = Measure("nemotron_moe_vlm_54l_100n.yaml");
  EXPECT_EQ(page["rank"], 800);
  EXPECT_LT(page["height"], 12000) << "a page that a person can read";
  EXPECT_GT(page["worst"], 0) << "expert rows may all go to one rank";
}

TEST_F(Browser, ShowsPipelineStages) {
  const json page = Measure(
      "nemotron_moe_vlm_54l_33n.yaml modules.language.parallel.pp=4 "
      "'modules.language.parallel.stage_layers=[14,14,13,13]'",
      kDark);
  EXPECT_EQ(page["rank"], 264);
  EXPECT_EQ(page["op"], page["action"]);
}

TEST_F(Browser, ShowsALargeWorld) {
  const json page = Measure("nemotron_moe_vlm_54l_131072r.yaml");
  EXPECT_EQ(page["rank"], 56) << "a node for each of the seven kinds";
  EXPECT_EQ(page["op"], page["action"]);
}

TEST_F(Browser, ShowsHundredsOfMicrobatches) {
  const json page = Measure("nemotron_moe_vlm_54l_33n.yaml batch.global_samples=30720");
  EXPECT_EQ(page["action"], 2 * 2 * 240);
}

TEST_F(Browser, ShowsANarrowWindow) { Measure("nemotron_moe_vlm_54l_33n.yaml", kLight, 640); }

TEST_F(Browser, IsDarkWhereTheSystemIs) {
  const json light = Measure("nemotron_moe_vlm_tiny.yaml", kLight), dark = Measure("nemotron_moe_vlm_tiny.yaml", kDark);
  EXPECT_NE(light["background"], dark["background"]);
  EXPECT_EQ(light["ink"], "rgb(20, 20, 15)");
  EXPECT_EQ(dark["ink"], "rgb(243, 242, 238)");
}

TEST_F(Browser, ShowsLayouts) {
  const std::string call =
      "tune " + InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml") +
      " --candidates 20 --fix gradients,modules.language.recompute,modules.radio_encoder.recompute";
  const json page = MeasurePage(call, kDark);
  EXPECT_EQ(page["sections"], json::array({"gpus8"}));
  EXPECT_GE(page["op"], 5) << "a square for each layout";
  MeasurePage(call + " --gpus 8,16", kLight, 640);
}

// The report of a run of many steps in three lives, with skipped steps, steps that were done again, and checkpoints.
TEST_F(Browser, ShowsARun) {
  const std::string run = folder_ + "/run";
  const auto steps = [](int first, int last) {
    std::string lines;
    for (int step = first; step <= last; ++step) {
      lines += json{{"step", step},
                    {"consumed_samples", 768 * step},
                    {"loss", 12.0 / (1 + 0.001 * step)},
                    {"grad_norm", 1.0 + step % 7},
                    {"learning_rate", 1.2e-3 * step / 158946},
                    {"step_seconds", 3.0 + 0.01 * (step % 11)},
                    {"skipped", step % 501 == 0}}
                   .dump() +
               "\n";
    }
    return lines;
  };
  for (const char* folder : {"run/lives/1/logs", "run/lives/2/logs", "run/lives/3", "run/logs"})
    std::filesystem::create_directories(folder_ + "/" + folder);
  Write("run/metrics.jsonl", steps(1, 3000));
  Write("run/lives/1/start.json", R"({"from_life": 0, "from_step": 0})");
  Write("run/lives/1/logs/launch.log",
        "2026-01-01 00:00:00.000000 +00:00  plan\n2026-01-01 01:00:00.000000 +00:00  exit code 10\n");
  Write("run/lives/1/outcome.json",
        R"({"exit_code": 10, "cause": "rank 131071 was killed by SIGKILL", "rank": 131071, "host": "node-with-a-name",
            "instruction": "step 1016 6 > exchange send radio_encoder.m1.rows receive radio_encoder.m0.received.drows",
            "recipe_line": "nemotron_moe_vlm_54l_33n.yaml:25:5"})");
  Write("run/lives/2/start.json", R"({"from_life": 1, "from_step": 1000})");
  Write("run/lives/2/logs/launch.log",
        "2026-01-01 01:10:00.000000 +00:00  plan\n2026-01-01 01:11:00.000000 +00:00  rank 0 started\n");
  Write("run/lives/2/dropped.jsonl", steps(1001, 1080));
  Write("run/lives/3/start.json", R"({"from_life": 1, "from_step": 1000})");
  Write("run/lives/3/dropped.jsonl", steps(1001, 1005));
  Write("run/lives/3/checkpoints.jsonl",
        R"({"step": 2000, "bytes": 77000000000, "copy_seconds": 4.5, "write_seconds": 61, "waited_seconds": 12.5, )"
        R"("published": 1767236400})"
        "\n");
  Write("run/logs/launch.log",
        "2026-01-01 01:12:00.000000 +00:00  plan\n2026-01-01 03:12:00.000000 +00:00  exit code 0\n");
  Write("run/outcome.json", R"({"exit_code": 0, "cause": "done"})");
  for (const char* theme : {kLight, kDark}) {
    for (int width : {1280, 500}) {
      const json page = MeasurePage("report " + run, theme, width);
      EXPECT_EQ(page["curve"], 4);
      EXPECT_EQ(page["wire"], 3) << "what was lost, with its loss, gradient norm and learning rate";
      EXPECT_THAT(page["sections"],
                  ::testing::IsSupersetOf({"summary", "curves", "time", "lives", "checkpoints", "notes"}));
    }
  }
}

}  // namespace
}  // namespace planwright
