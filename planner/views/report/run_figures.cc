#include "planner/views/report/run_figures.h"

#include <algorithm>
#include <numeric>

#include "planner/plan/evaluation_schedule.h"

namespace planwright {
namespace {

// How long the life at this index took: from its first sign to its last one, or to the end of the report if it goes on.
double SecondsOfLife(const RunReport& report, size_t index) {
  const RunLife& life = report.lives[index];
  const bool goes_on = report.live() && index + 1 == report.lives.size() && !life.outcome;
  const std::optional<absl::Time> end = goes_on ? report.now : life.end;
  if (!life.begin || !end) return 0;
  return std::max(0.0, absl::ToDoubleSeconds(*end - *life.begin));
}

}  // namespace

std::optional<Pace> PaceOf(const RunReport& report) {
  if (report.steps.empty()) return std::nullopt;
  const std::deque<StepPoint>& last = report.steps.last();
  size_t first = 0;
  const int64_t warm = report.life().first_step;
  while (first + 1 < last.size() && last[first].step <= warm) ++first;
  std::vector<double> seconds;
  std::optional<double> data_wait;
  for (size_t i = first; i < last.size(); ++i) {
    if (last[i].seconds <= 0) continue;
    seconds.push_back(last[i].seconds);
    if (last[i].data_wait) data_wait = data_wait.value_or(0) + *last[i].data_wait;
  }
  if (seconds.empty()) return std::nullopt;
  Pace pace;
  pace.steps = static_cast<int>(seconds.size());
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  if (data_wait) pace.data_wait = *data_wait / sum;
  const double mean = sum / static_cast<double>(seconds.size());
  std::nth_element(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end());
  pace.seconds = seconds[seconds.size() / 2];
  pace.samples_per_second = static_cast<double>(report.steps.samples_of_last()) / pace.seconds;
  if (report.plan) {
    pace.tokens_per_second = pace.samples_per_second * static_cast<double>(report.plan->sequence_length);
    pace.left = mean * static_cast<double>(std::max<int64_t>(0, report.plan->steps - report.steps.back().step));
    if (const EvaluationSeries& evaluations = report.evaluations; !evaluations.empty()) {
      *pace.left += static_cast<double>(EvaluationsToCome(report)) * evaluations.seconds() /
                    static_cast<double>(evaluations.count());
    }
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
  use.counted = report.steps.seconds();
  use.data_wait = report.steps.data_wait();
  use.evaluation = report.evaluations.seconds();
  for (const RunLife& life : report.lives) use.again += life.dropped.seconds() + life.dropped_evaluations;
  use.other = std::max(0.0, in_lives - use.counted - use.evaluation - use.again);
  use.between = std::max(0.0, use.all - in_lives);
  return use;
}

int64_t EvaluationsToCome(const RunReport& report) {
  if (!report.plan || report.steps.empty()) return 0;
  const PlanFacts& plan = *report.plan;
  return EvaluationSchedule{plan.steps, plan.global_samples, plan.evaluate_every_samples}.ComeAfter(
      report.steps.back().step);
}

std::optional<double> LastOfSource(const StepSeries& steps, size_t source) {
  Spread spread;
  for (const StepPoint& point : steps.last()) {
    for (const auto& [name, loss] : point.source_losses) {
      if (loss && name == steps.sources()[source]) spread.Add(*loss);
    }
  }
  return spread.count > 0 ? std::optional(spread.mean) : std::nullopt;
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
