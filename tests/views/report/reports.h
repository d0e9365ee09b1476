// Reports of runs that tests make up.
#pragma once

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/views/report/report_text.h"
#include "planner/views/report/run_report.h"

namespace planwright::testing {

inline constexpr double kBegin = 1'700'000'000;  // seconds since 1970

inline absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(kBegin + seconds); }

// A step of 8 samples that took a second, with a loss that falls.
inline StepPoint PointOf(int64_t step) {
  return {.step = step,
          .samples = 8 * step,
          .loss = 6 - 0.1 * static_cast<double>(step),
          .grad_norm = 2.0,
          .learning_rate = 1e-3,
          .seconds = 1,
          .skipped = false};
}

inline std::vector<StepPoint> PointsTo(int64_t last) {
  std::vector<StepPoint> points;
  for (int64_t step = 1; step <= last; ++step) points.push_back(PointOf(step));
  return points;
}

inline StepSeries SeriesOf(const std::vector<StepPoint>& points) {
  StepSeries series;
  for (const StepPoint& point : points) series.Add(point);
  return series;
}

// Gives these steps.
inline EachStep Giving(std::vector<StepPoint> points) {
  return [points = std::move(points)](const StepVisitor& visit) {
    for (const StepPoint& point : points) {
      if (!visit(point)) break;
    }
    return absl::OkStatus();
  };
}

// What `plan report --json` prints.
inline nlohmann::ordered_json JsonOf(const RunReport& report, const AllSteps& steps) {
  std::ostringstream text;
  WriteReportJson(report, steps, text);
  return nlohmann::ordered_json::parse(text.str());
}

// A run of 2 ranks and 30 steps. Life 1 began at 0 s, did steps 1 to 15, published step 10, and lost rank 1 at 20 s.
// Life 2 began at 30 s from step 10, did steps 11 to 30, and was done at 60 s.
inline RunReport KilledRun() {
  RunReport report;
  report.run_dir = "runs/icons";
  report.now = At(100);
  report.state = RunState::kEnded;
  report.last_sign = At(60);
  report.plan = {.name = "icons",
                 .digest = "0123456789abcdef",
                 .ranks = 2,
                 .steps = 30,
                 .global_samples = 8,
                 .sequence_length = 100};
  report.steps = SeriesOf(PointsTo(30));
  RunLife first;
  first.started = true;
  first.begin = At(0);
  first.end = At(20);
  first.first_step = 1, first.last_step = 15;
  first.outcome = Outcome{
      10, "rank 1 was killed by SIGKILL",
      Failure{
          .rank = 1, .host = "node3", .instruction = "step 16 6 > exchange rows", .recipe_line = "icons.yaml:25:5"}};
  first.checkpoints = {
      {.step = 10, .bytes = 11'000'000, .copied = 0.001, .written = 0.2, .waited = 0, .published = kBegin + 11}};
  RunLife second;
  second.number = 2;
  second.from_life = 1, second.from_step = 10;
  second.started = true;
  second.begin = At(30);
  second.end = At(60);
  second.first_step = 11, second.last_step = 30;
  second.outcome = Outcome{0, "done"};
  for (int step = 11; step <= 15; ++step) second.dropped.Add(PointOf(step)), report.again.Add(PointOf(step));
  report.checkpoints.push_back({.step = 10,
                                .life = 1,
                                .bytes = 11'000'000,
                                .published = At(11),
                                .cost = first.checkpoints[0],
                                .state = "usable",
                                .usable = true});
  report.lives = {first, second};
  return report;
}

// The same run with evaluations of two sets before it and after every 10 steps, each of 2 s, and steps of two sources.
inline RunReport EvaluatedRun() {
  RunReport report = KilledRun();
  report.plan->evaluate_every_samples = 80;
  std::vector<StepPoint> points = PointsTo(30);
  for (StepPoint& point : points) point.source_losses = {{"icons", *point.loss - 1}, {"text", *point.loss + 1}};
  report.steps = SeriesOf(points);
  for (const int64_t step : {0, 10, 20, 30}) {
    const double loss = step == 30 ? 5.5 : 6 - 0.05 * static_cast<double>(step);
    report.evaluations.Add({.step = step,
                            .consumed_samples = 8 * step,
                            .seconds = 2,
                            .sets = {{"held_out", {loss, 100}, {{"icons", {loss - 1, 50}}, {"text", {loss + 1, 50}}}},
                                     {"small", {7.0, 10}, {{"icons", {7.0, 10}}}}}});
  }
  return report;
}

// The same run in step 31 of 60, in life 2, with rank 1 in a product for 2 s and rank 0 waiting for it.
inline RunReport RunningRun() {
  RunReport report = KilledRun();
  report.now = At(62);
  report.state = RunState::kRunning;
  report.holder = "process 4711 on node3";
  report.plan->steps = 60;
  report.lives[1].outcome.reset();
  for (int rank = 0; rank < 2; ++rank) {
    RecordedInstruction at;
    at.number = 5;
    at.state = rank == 0 ? RecorderState::kWaiting : RecorderState::kRunning;
    at.step = 31;
    at.wall = static_cast<int64_t>((kBegin + 60) * 1e9);
    at.path = "step 31";
    at.text = rank == 0 ? "all_reduce loss over world" : "linear x @weight";
    RankPosition position;
    position.state = RecorderState::kRunning;
    position.begun = 5, position.done = 4;
    position.last = position.undone = at;
    report.ranks.push_back({rank, position});
  }
  return report;
}

}  // namespace planwright::testing
