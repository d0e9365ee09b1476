// The page of a run: well-formed, complete by itself, escaped, of bounded size, and nothing is drawn outside a drawing.
#include "planner/views/report/report_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "planner/views/report/overlay_page.h"
#include "planner/views/report/page_curve.h"
#include "tests/views/report/reports.h"
#include "tests/views/show/markup_reader.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using testing::Element;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KilledRun;
using testing::MarkupReader;
using ::testing::Not;
using testing::PointOf;
using testing::RunningRun;

// All elements; every coordinate of them lies in its drawing.
std::vector<Element> CheckedPage(const std::string& page) {
  std::vector<Element> elements = MarkupReader(page).Read();
  EXPECT_THAT(page,
              AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")), Not(HasSubstr("http")), Not(HasSubstr("<script"))));
  for (const Element& element : elements) {
    if (element.svg.empty() || element.tag == "svg") continue;
    std::istringstream box(element.svg);
    double left = 0, top = 0, width = 0, height = 0;
    box >> left >> top >> width >> height;
    const auto inside = [&](const char* position, const char* size, double most) {
      if (!element.attributes.contains(position)) return;
      double end = std::stod(element.attributes.at(position));
      EXPECT_GE(end, -0.01) << element.tag;
      if (element.attributes.contains(size)) end += std::stod(element.attributes.at(size));
      EXPECT_LE(end, most + 0.11) << element.tag << " " << position;
    };
    inside("x", "width", width);
    inside("y", "height", height);
  }
  return elements;
}

std::vector<Element> Checked(const RunReport& report) { return CheckedPage(ReportPage(report)); }

TEST(ReportPage, DrawsEvaluationsBesideTheTraining) {
  const RunReport report = testing::EvaluatedRun();
  Checked(report);
  const std::string page = ReportPage(report);
  for (const char* text : {"training</span>", "held_out</span>", "small</span>", "<h3>Loss by source</h3>",
                           "icons</span>", "loss of held_out", "evaluation"})
    EXPECT_THAT(page, HasSubstr(text));
  EXPECT_THAT(ReportPage(KilledRun()), AllOf(Not(HasSubstr("Loss by source")), Not(HasSubstr("evaluation"))));
}

TEST(OverlayPage, DrawsALineForEachRun) {
  RunReport other = testing::KilledRun();
  other.run_dir = "<i>";
  RunReport none;
  none.run_dir = "none";
  none.lives.emplace_back();
  const std::vector<RunReport> runs = {testing::EvaluatedRun(), other, none};
  const std::string page = OverlayPage(runs);
  CheckedPage(page);
  for (const char* text : {"runs/icons</span>", "&lt;i&gt;</span>", "<h3>Loss</h3>", "<h3>Loss of held_out</h3>",
                           "<h3>Throughput, samples/s</h3>", "80 samples, 5.5"})
    EXPECT_THAT(page, HasSubstr(text));
  CheckedPage(OverlayPage({none, none}));
}

TEST(ReportPage, IsWellFormedForEveryState) {
  RunReport empty;
  empty.run_dir = "run";
  empty.now = testing::At(0);
  empty.state = RunState::kVanished;
  empty.lives.emplace_back();
  Checked(empty);
  Checked(KilledRun());
  RunReport report = RunningRun();
  for (RunState state : {RunState::kRunning, RunState::kUnseen, RunState::kVanished}) {
    report.state = state;
    Checked(report);
  }
  report.steps = testing::SeriesOf(testing::PointsTo(1));
  Checked(report);
}

TEST(ReportPage, TellsWhatTheTerminalTells) {
  const std::string page = ReportPage(KilledRun());
  for (const char* text : {"rank 1 was killed by SIGKILL", "step 16 6 &gt; exchange rows", "icons.yaml:25:5", "node3",
                           "50.0 %", "1-15", "11-30", "checkpoint of step 10, life 1", "11.0 MB",
                           "steps that were lost with their life and done again", ">life 2</text>"})
    EXPECT_THAT(page, HasSubstr(text));
}

TEST(ReportPage, EscapesTextsOfFiles) {
  RunReport report = KilledRun();
  report.plan->name = "<em>\"x\" & y</em>\x01\xff";
  report.run_dir = "<i>";
  report.lives[0].outcome->cause = "</title><script>alert(1)</script>";
  report.lives[0].outcome->failure->instruction = "<svg onload='x'>";
  report.checkpoints[0].state = "damaged: <u>";
  report.notes = {"<a href=\"http:\">"};
  report.notes[0].replace(9, 5, "x");
  report.lives.pop_back();
  for (const Element& element : Checked(report)) {
    EXPECT_NE(element.tag, "script");
    EXPECT_NE(element.tag, "em");
    EXPECT_NE(element.tag, "i");
    EXPECT_NE(element.tag, "u");
  }
}

TEST(ReportPage, StaysSmall) {
  RunReport report = KilledRun();
  std::vector<StepPoint> points = testing::PointsTo(200'000);
  for (size_t i = 0; i < points.size(); i += 10) points[i].skipped = true;
  report.steps = testing::SeriesOf(points);
  for (int64_t step = 11; step <= 60'000; ++step) {
    if (step > 15) report.lives[1].dropped.Add(PointOf(step)), report.again.Add(PointOf(step));
    report.checkpoints.push_back(
        {.step = step, .life = 2, .bytes = 1, .published = {}, .cost = {}, .state = "removed", .usable = false});
  }
  for (int life = 3; life <= 5000; ++life) {
    report.lives.push_back(report.lives[0]);
    report.lives.back().number = life;
  }
  EXPECT_LT(ReportPage(report).size(), 2'000'000U);
  Checked(report);
}

TEST(ReportPage, DrawsAnyNumbers) {
  for (double value : {0.0, -0.0, 1e299, -1e299, 5e-324, 1e-299, 3.0}) {
    RunReport report = KilledRun();
    std::vector<StepPoint> points = testing::PointsTo(30);
    for (StepPoint& point : points) point.loss = value, point.grad_norm = value;
    report.steps = testing::SeriesOf(points);
    Checked(report);
    points[3].loss = std::nextafter(value, 1e300);
    points[4].loss = -value;
    points[5].loss.reset();
    report.steps = testing::SeriesOf(points);
    Checked(report);
  }
}

TEST(AxisTicks, AreRound) {
  EXPECT_THAT(AxisTicks(0, 10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(AxisTicks(3.05, 5.57), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(AxisTicks(0, 45'812), ElementsAre(0, 10'000, 20'000, 30'000, 40'000, 50'000));
  EXPECT_EQ(AxisTicks(7, 7).size(), AxisTicks(-7, -7).size());
  EXPECT_LT(AxisTicks(7, 7).front(), 7);
  EXPECT_GT(AxisTicks(7, 7).back(), 7);
}

}  // namespace
}  // namespace planwright
