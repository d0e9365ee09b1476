// What `plan status` and `plan report` print of runs that are known to the last number.
#include "planner/views/report/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <sstream>

#include "planner/base/files/exit_status.h"
#include "planner/base/paper/table.h"
#include "planner/views/report/overlay_page.h"
#include "tests/views/report/reports.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::KilledRun;
using ::testing::MatchesRegex;
using ::testing::Not;
using testing::RunningRun;

TEST(ReportText, TellsOfEvaluations) {
  const RunReport report = testing::EvaluatedRun();
  const char* const lines =
      "\nloss by source (mean of 20 steps): icons 2.95, text 4.95\n"
      "evaluation of step 30: held_out 5.5 (icons 4.5, text 6.5), least 5 of step 20; small 7, "
      "least 7 of step 0\n";
  EXPECT_THAT(StatusText(report, 150), HasSubstr(lines));
  const std::string text = ReportText(report, 100);
  EXPECT_THAT(text, AllOf(HasSubstr(lines), HasSubstr("\nloss of held_out\n"), HasSubstr("\nloss of small\n")));
  EXPECT_THAT(text, HasSubstr("  evaluation                          13.3 %  8.00 s\n"));
  EXPECT_THAT(ReportText(KilledRun(), 100), Not(HasSubstr("evaluation")));
  RunReport not_finite = testing::EvaluatedRun();
  not_finite.evaluations.Add({.step = 31, .sets = {{"held_out", {std::nullopt, 100}, {}}, {"small", {}, {}}}});
  EXPECT_THAT(StatusText(not_finite, 150), HasSubstr("held_out nan, least 5 of step 20; small -, least"));
}

TEST(OverlayText, HasALineForEachRun) {
  RunReport other = KilledRun();
  other.run_dir = "runs/other";
  const std::string text = OverlayText({testing::EvaluatedRun(), other}, 200);
  EXPECT_THAT(text,
              HasSubstr("run         plan          ranks  step  samples  loss  least of held_out  least of small"));
  EXPECT_THAT(text, HasSubstr("5 of step 20"));
  EXPECT_THAT(text, HasSubstr("\nruns/other"));
}

TEST(StatusText, OfARunThatGoesOn) {
  const std::string text = StatusText(RunningRun(), 150);
  EXPECT_THAT(text, HasSubstr("icons on 2 ranks, plan 0123456789ab, in runs/icons\n"));
  EXPECT_THAT(text,
              MatchesRegex("[^\n]*\nruns \\(process 4711 on node3\\), life 2, since 20[^\n]* \\(32.0 s\\)\n(.|\n)*"));
  EXPECT_THAT(text, HasSubstr("\nstep 30 of 60 (50 %), 240 samples, 24.0 thousand tokens\n"
                              "loss 3, gradient norm 2, learning rate 0.001\n"
                              "1.00 s a step (median of 19), 8 samples/s, 800 tokens/s\n"
                              "life 2 did 5 steps again: 11 to 15\n"
                              "about 30.0 s to go, until "));
  EXPECT_THAT(text, HasSubstr("\nnewest checkpoint: step 10 of life 1, 11.0 MB, 51.0 s old\n"));
  EXPECT_THAT(text, HasSubstr("    1  computes      2.00 s  step 31 > linear x @weight\n"
                              "    0  communicates  2.00 s  step 31 > all_reduce loss over world\n"
                              "slowest now: rank 1, which computes for 2.00 s while 1 rank communicates\n"));
  EXPECT_EQ(ExitStatusOf(RunningRun()), 0);
}

TEST(StatusText, SaysWhatWasPredicted) {
  RunReport report = RunningRun();
  report.plan->predicted_step = 0.9;
  EXPECT_THAT(StatusText(report, 150), HasSubstr("800 tokens/s; predicted 0.90 s a step (-10 %)\n"));
}

// The table of --trace of the newest life that has one.
TEST(ReportText, HasTheProfileBesideItsPrediction) {
  RunReport report = KilledRun();
  ProfileRow row = {.name = "linear", .times = 2, .device = 4, .slowest_rank = 4};
  row.predicted = 3;
  ProfileRow part = row;
  part.name = "language.mamba";
  RoleProfile role = {.role = "language.s0", .ranks = {0}, .parts = {{part, {row}}}};
  role.step = role.instructions = 4, role.predicted_step = 3, role.predicted_communication = 0;
  report.lives[0].outcome->profile = RunProfile{.steps = {3, 4}, .roles = {role}};
  const std::string text = ReportText(report, 150);
  EXPECT_THAT(text, HasSubstr("\nof life 1:\nprofile of steps 3-4\n"));
  EXPECT_THAT(text, HasSubstr("\n  linear              2  4.000      3.000  -25%  100.0%"));
  EXPECT_THAT(text, HasSubstr("\nfurthest from the prediction, in ms of a step\n"));
  const nlohmann::ordered_json json = testing::JsonOf(report, {testing::Giving({}), testing::Giving({})});
  EXPECT_EQ(json["lives"][0]["profile"]["roles"][0]["parts"][0]["instructions"][0]["predicted_ms"], 3);
  EXPECT_TRUE(json["lives"][1]["profile"].is_null());
  EXPECT_TRUE(json["plan"]["predicted_step_seconds"].is_null());
}

TEST(StatusText, OfARunThatFailed) {
  RunReport report = KilledRun();
  report.lives.pop_back();
  report.steps = testing::SeriesOf(testing::PointsTo(15));
  const std::string text = StatusText(report, 150);
  EXPECT_THAT(text, HasSubstr("\nended with exit status 10: rank 1 was killed by SIGKILL; last sign "));
  EXPECT_THAT(text, HasSubstr("  rank 1 on node3\n  at step 16 6 > exchange rows\n  from icons.yaml:25:5\n"));
  EXPECT_THAT(text, Not(HasSubstr("to go")));
  EXPECT_EQ(ExitStatusOf(report), 10);
}

TEST(StatusText, OfARunThatIsDone) {
  EXPECT_THAT(StatusText(KilledRun(), 150), HasSubstr("\ndone, life 2; last sign "));
  EXPECT_EQ(ExitStatusOf(KilledRun()), 0);
  RunReport report = KilledRun();
  report.plan->steps = 31;
  EXPECT_THAT(StatusText(report, 150), HasSubstr("\ndone with the steps that were asked for, life 2"));
}

TEST(StatusText, OfARunThatEndedWithoutAWord) {
  RunReport report = RunningRun();
  report.state = RunState::kVanished;
  EXPECT_THAT(StatusText(report, 150),
              AllOf(HasSubstr("ended without a word, life 2: its launch was killed, or its machine died"),
                    HasSubstr("linear x @weight"), Not(HasSubstr("slowest"))))
      << "where its ranks were helps to find out why";
  EXPECT_EQ(ExitStatusOf(report), kExitPeerLost);
  report.state = RunState::kUnseen;
  EXPECT_THAT(StatusText(report, 150), HasSubstr("was started on another host (process 4711 on node3), life 2"));
  EXPECT_EQ(ExitStatusOf(report), 0) << "nobody can tell from here";
}

TEST(StatusText, BetweenTwoLives) {
  RunReport report = RunningRun();
  report.state = RunState::kBetween;
  report.lives[1].outcome = Outcome{10, "rank 0 was killed by SIGKILL", Failure{.rank = 0}, {{3, "language.s0"}}};
  EXPECT_THAT(StatusText(report, 150), HasSubstr("life 2 has ended with exit status 10 (rank 0 was killed by SIGKILL), "
                                                 "and its launch still holds the run (process 4711 on node3)"));
  EXPECT_THAT(StatusText(report, 150), HasSubstr("\nrank 3 (language.s0) is slow: "));
  EXPECT_EQ(ExitStatusOf(report), 0);
}

TEST(StatusText, BeforeTheFirstStep) {
  RunReport report = RunningRun();
  report.steps = {};
  report.checkpoints.clear();
  for (RankReport& rank : report.ranks) rank.position->begun = rank.position->done = 0;
  EXPECT_THAT(StatusText(report, 150),
              AllOf(HasSubstr("\nno step is done\n"), HasSubstr("  0-1  starts\n"), Not(HasSubstr("checkpoint"))));
}

TEST(StatusText, TextsOfFilesCannotMoveTheCursor) {
  RunReport report = KilledRun();
  report.plan->name = "a\x1b[2Jb";
  report.lives.pop_back();
  report.lives[0].outcome->cause = "x\ny\x1b[1A";
  report.lives[0].outcome->failure->message = "first\nsecond\x07";
  report.notes = {"n\r"};
  for (const std::string& text : {StatusText(report, 150), ReportText(report, 150)}) {
    EXPECT_THAT(text, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), Not(HasSubstr("\r"))));
    EXPECT_THAT(text, AllOf(HasSubstr("a\\x1b[2Jb"), HasSubstr("x\\x0ay"), HasSubstr("  first\n  second\\x07\n")));
  }
}

TEST(ReportText, SaysWhereTheTimeWent) {
  const std::string text = ReportText(KilledRun(), 150);
  EXPECT_THAT(text, HasSubstr("\n1 min 00 s since the first launch\n"
                              "  steps that count (goodput)          50.0 %  30.0 s\n"
                              "  steps that were lost and done again  8.3 %  5.00 s\n"
                              "  start, loading and end              25.0 %  15.0 s\n"
                              "  between lives                       16.7 %  10.0 s\n"));
}

TEST(ReportText, ListsLivesAndCheckpoints) {
  const std::string text = ReportText(KilledRun(), 150);
  EXPECT_THAT(text, HasSubstr("from step  steps  exit  how it ended\n"));
  EXPECT_THAT(text, HasSubstr("          0   1-15    10  rank 1 was killed by SIGKILL\n"));
  EXPECT_THAT(text, HasSubstr("         10  11-30     0  done\n"));
  EXPECT_THAT(text, HasSubstr("11.0 MB  1.00 ms  0.20 s   0 s "));
}

TEST(ReportText, DrawsEachCurveInItsWidth) {
  RunReport report = KilledRun();
  std::vector<StepPoint> points = testing::PointsTo(5000);
  points[7].loss.reset();
  report.steps = testing::SeriesOf(points);
  for (size_t width : {60U, 150U}) {
    const std::string text = ReportText(report, width);
    for (const char* title : {"\nloss\n", "\ngradient norm\n", "\nlearning rate\n", "\ntokens per second\n"})
      EXPECT_THAT(text, HasSubstr(title));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.find("┤") != std::string::npos || line.find("│") != std::string::npos) {
        EXPECT_LE(Width(line), width);
      }
    }
    EXPECT_THAT(text, HasSubstr(" 5,000\n"));
  }
}

TEST(ReportText, LongListsAreCut) {
  RunReport report = KilledRun();
  for (int life = 3; life <= 50; ++life) {
    RunLife more = report.lives[0];
    more.number = life;
    report.lives.push_back(more);
  }
  EXPECT_THAT(ReportText(report, 150), HasSubstr("the first 30 lives are left out; --json has all\n"));
  EXPECT_EQ(testing::JsonOf(report, {testing::Giving({}), testing::Giving({})})["lives"].size(), 50U);
}

TEST(ReportJson, HasEverything) {
  const std::vector<StepPoint> points = testing::PointsTo(30);
  const auto json = testing::JsonOf(
      KilledRun(), {testing::Giving(points), testing::Giving({points.begin() + 10, points.begin() + 15})});
  EXPECT_EQ(json["state"], "ended");
  EXPECT_EQ(json["exit_status"], 0);
  EXPECT_EQ(json["time"]["goodput"], 0.5);
  EXPECT_EQ(json["steps"].size(), 30U);
  EXPECT_EQ(json["steps_done_again"].size(), 5U);
  EXPECT_EQ(json["steps_done_again"][0]["step"], 11);
  EXPECT_EQ(json["lives"][0]["outcome"]["rank"], 1);
  EXPECT_EQ(json["lives"][0]["began"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(json["lives"][1]["from_step"], 10);
  EXPECT_EQ(json["checkpoints"][0]["write_seconds"], 0.2);
}

TEST(StatusJson, HasRanks) {
  const auto json = StatusJson(RunningRun());
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["launch"], "process 4711 on node3");
  EXPECT_EQ(json["pace"]["seconds_left"], 30);
  EXPECT_EQ(json["checkpoint"]["step"], 10);
  EXPECT_THAT(json["ranks"][0]["ranks"], ElementsAre(1));
  EXPECT_EQ(json["ranks"][0]["state"], "computes");
  EXPECT_EQ(json["slowest"]["rank"], 1);
  EXPECT_THAT(json["notes"], IsEmpty());
}

}  // namespace
}  // namespace planwright
