// The steps of a run, added one after the other, in memory that does not grow with their number: sums over all of them,
// the last ones as they are, and bins of neighbouring steps for curves.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/views/report/step_file.h"

namespace planwright {

// The least, the mean and the most of one number of some steps. `count`: of those that have it.
struct Spread {
  double least = 0, mean = 0, most = 0;
  int64_t count = 0;

  void Add(double value) { Add({value, value, value, 1}); }
  void Add(const Spread& other);
};

// Steps that follow each other.
struct StepBin {
  int64_t first = 0, steps = 0;           // the index of its first step in the run, from 0, and how many it has
  int64_t first_step = 0, last_step = 0;  // their numbers
  int64_t first_samples = 0, last_samples = 0;
  Spread loss, grad_norm, learning_rate, samples_per_second;
  std::vector<Spread> source_losses;  // by StepSeries::sources(); shorter where no step has had the last ones

  void Add(const StepBin& next);
};

class StepSeries {
 public:
  static constexpr size_t kMostBins = 8192;    // a run of so many steps has a bin for each
  static constexpr size_t kLastSteps = 20;     // that are kept
  static constexpr size_t kMostSkipped = 400;  // of which the numbers are kept
  static constexpr size_t kMostSources = 24;   // whose losses are kept

  void Add(const StepPoint& point);

  bool empty() const { return size_ == 0; }
  int64_t size() const { return size_; }
  const StepPoint& front() const { return front_; }  // of a run with steps, as back()
  const StepPoint& back() const { return last_.back(); }
  const std::deque<StepPoint>& last() const { return last_; }  // the last ones, the newest at the end
  int64_t samples_of_last() const { return samples_of_last_; }
  double seconds() const { return seconds_; }  // in all steps
  // Of these, waiting for samples; nullopt: no step says it.
  std::optional<double> data_wait() const { return data_wait_; }
  int64_t skipped() const { return skipped_; }
  // The first steps that were skipped: index and number.
  const std::vector<std::pair<int64_t, int64_t>>& first_skipped() const { return first_skipped_; }

  // The sources of which steps say the loss, in the order in which they come.
  const std::vector<std::string>& sources() const { return sources_; }

  const std::vector<StepBin>& bins() const { return bins_; }
  // The index of a step, of the first step of so many samples or more (size(): none), and of the step that consumed so
  // many. Where bins have several steps, as if these were at equal distances.
  std::optional<int64_t> IndexOfStep(int64_t step) const;
  int64_t IndexOfSamples(int64_t samples) const;
  std::optional<int64_t> FindSamples(int64_t samples) const;
  int64_t StepAt(int64_t index) const;

 private:
  void AddToBins(const StepBin& bin);
  void AddSources(const StepPoint& point, StepBin& bin);

  int64_t size_ = 0, skipped_ = 0, samples_of_last_ = 0;
  double seconds_ = 0;
  std::optional<double> data_wait_;
  StepPoint front_;
  std::deque<StepPoint> last_;
  std::vector<std::pair<int64_t, int64_t>> first_skipped_;
  std::vector<std::string> sources_;
  std::vector<StepBin> bins_;
  int64_t steps_of_bin_ = 1;
};

// Sums over steps whose results were lost with a life, and that a later life did again.
class DroppedSteps {
 public:
  void Add(const StepPoint& point);

  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  double seconds() const { return seconds_; }
  const StepPoint& front() const { return front_; }  // of some steps, as back()
  const StepPoint& back() const { return back_; }

 private:
  int64_t count_ = 0;
  double seconds_ = 0;
  StepPoint front_, back_;
};

// Evenly chosen ones of many points: all of them, or every second, every fourth, ...
class EvenChoice {
 public:
  static constexpr size_t kMost = 4000;

  void Add(const StepPoint& point);
  const std::vector<StepPoint>& points() const { return points_; }

 private:
  std::vector<StepPoint> points_;
  int64_t seen_ = 0, distance_ = 1;
};

}  // namespace planwright
