#include "planner/report/run_figures.h"

#include <algorithm>
#include <numeric>

namespace planwright {
namespace {

double SecondsOf(const std::vector<StepPoint>& steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0,
                         [](double sum, const StepPoint& point) { return sum + point.seconds; });
}

// Of the life at this index: from its first sign to its last one, or to the end of the report if it goes on.
double SecondsOfLife(const RunReport& report, size_t index) {
  const RunLife& life = report.lives[index];
  const bool goes_on = report.live() && index + 1 == report.lives.size() && !life.outcome;
  const std::optional<absl::Time> end = goes_on ? report.now : life.end;
  if (!life.begin || !end) return 0;
  return std::max(0.0, absl::ToDoubleSeconds(*end - *life.begin));
}

}  // namespace

std::vector<int64_t> SamplesOfSteps(const RunReport& report) {
  std::vector<int64_t> samples;
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const StepPoint& point = report.steps[i];
    if (i > 0 && report.steps[i - 1].step + 1 == point.step) {
      samples.push_back(point.samples - report.steps[i - 1].samples);
    } else {
      samples.push_back(point.samples / point.step);  // all steps before it had as many
    }
  }
  return samples;
}

std::vector<std::optional<double>> ThroughputOfSteps(const RunReport& report) {
  const std::vector<int64_t> samples = SamplesOfSteps(report);
  const int64_t tokens = report.plan ? report.plan->sequence_length : 1;
  std::vector<std::optional<double>> throughput(report.steps.size());
  for (size_t i = 0; i < report.steps.size(); ++i) {
    if (const double seconds = report.steps[i].seconds; seconds > 0)
      throughput[i] = static_cast<double>(samples[i]) * static_cast<double>(tokens) / seconds;
  }
  return throughput;
}

std::optional<Pace> PaceOf(const RunReport& report) {
  const size_t all = report.steps.size();
  if (all == 0) return std::nullopt;
  size_t first = all - std::min(all, kPaceSteps);
  const int64_t warm = report.life().first_step;
  while (first + 1 < all && report.steps[first].step <= warm) ++first;
  std::vector<double> seconds;
  for (size_t i = first; i < all; ++i) {
    if (report.steps[i].seconds > 0) seconds.push_back(report.steps[i].seconds);
  }
  if (seconds.empty()) return std::nullopt;
  Pace pace;
  pace.steps = static_cast<int>(seconds.size());
  const double mean = std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  pace.seconds = seconds[seconds.size() / 2];
  pace.samples_per_second = static_cast<double>(SamplesOfSteps(report).back()) / pace.seconds;
  if (report.plan) {
    pace.tokens_per_second = pace.samples_per_second * static_cast<double>(report.plan->sequence_length);
    pace.left = mean * static_cast<double>(std::max<int64_t>(0, report.plan->steps - report.steps.back().step));
  }
  return pace;
}

std::optional<TimeUse> TimeUseOf(const RunReport& report) {
  std::optional<absl::Time> begin, end;
  double in_lives = 0;
  for (size_t i = 0; i < report.lives.size(); ++i) {
    const RunLife& life = report.lives[i];
    if (life.last_step > 0 && !life.begin) return std::nullopt;
    if (life.begin && (!begin || *life.begin < *begin)) begin = life.begin;
    if (life.end && (!end || *life.end > *end)) end = life.end;
    in_lives += SecondsOfLife(report, i);
  }
  if (report.live()) end = report.now;
  if (!begin || !end) return std::nullopt;
  TimeUse use;
  use.all = std::max(0.0, absl::ToDoubleSeconds(*end - *begin));
  use.counted = SecondsOf(report.steps);
  use.again = SecondsOf(StepsDoneAgain(report));
  use.other = std::max(0.0, in_lives - use.counted - use.again);
  use.between = std::max(0.0, use.all - in_lives);
  return use;
}

int64_t SkippedSteps(const RunReport& report) {
  return std::count_if(report.steps.begin(), report.steps.end(), [](const StepPoint& point) { return point.skipped; });
}

std::vector<StepPoint> StepsDoneAgain(const RunReport& report) {
  std::vector<StepPoint> again;
  for (const RunLife& life : report.lives) again.insert(again.end(), life.dropped.begin(), life.dropped.end());
  return again;
}

double WaitedForDisk(const RunReport& report) {
  double waited = 0;
  for (const ReportedCheckpoint& checkpoint : report.checkpoints)
    waited += checkpoint.cost ? checkpoint.cost->waited : 0;
  return waited;
}

const ReportedCheckpoint* NewestCheckpoint(const RunReport& report) {
  const ReportedCheckpoint* newest = nullptr;
  for (const ReportedCheckpoint& checkpoint : report.checkpoints) {
    if (checkpoint.usable) newest = &checkpoint;
  }
  return newest;
}

}  // namespace planwright
