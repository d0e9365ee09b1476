// What follows from a report by arithmetic: how fast a run is, when it will be done, and where its time went.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/views/report/run_report.h"

namespace planwright {

struct Pace {
  int steps = 0;       // that it is measured over
  double seconds = 0;  // of a step: their median
  double samples_per_second = 0;
  std::optional<double> tokens_per_second;
  // Seconds to the end of the budget, at the mean of these steps, and of the evaluations so far.
  std::optional<double> left;
  std::optional<double> data_wait;  // the share of these steps' time that rank 0 waited for samples
};
// How fast the last steps were. The first step of the newest life is left out if there are others: it warms up.
// nullopt: no step is done.
std::optional<Pace> PaceOf(const RunReport& report);

// Where the time since the first launch went, in seconds. Steps count if their result is part of the run.
struct TimeUse {
  double all = 0;                   // from the first launch to the end, or to now if the run goes on
  double counted = 0;               // in steps that count
  std::optional<double> data_wait;  // of `counted`, waiting for samples; nullopt: no step says it
  double evaluation = 0;            // in evaluations that count
  double again = 0;                 // in steps and evaluations that were lost with a life and done again
  double other = 0;                 // in lives, but in no step: start, loading, end
  double between = 0;               // between lives
  double goodput() const { return all > counted ? counted / all : 1; }
};
// nullopt: a launch that did steps has left no times.
std::optional<TimeUse> TimeUseOf(const RunReport& report);

// How many evaluations are still to come after the last step that is done. 0 if the plan is unknown.
int64_t EvaluationsToCome(const RunReport& report);

// The mean loss of a source (by its index in StepSeries::sources) over the last steps that are kept; nullopt: none of
// them has it.
std::optional<double> LastOfSource(const StepSeries& steps, size_t source);

// Seconds that training waited for a checkpoint to be written, before the next one could be copied.
double WaitedForDisk(const RunReport& report);

// The newest checkpoint that a next life may load; null: there is none.
const ReportedCheckpoint* NewestCheckpoint(const RunReport& report);

}  // namespace planwright
