// The evaluations of a run (docs/training/evaluation.md), added one after the other, in memory that does not grow with
// their number: evenly chosen ones for curves, the newest, and the best of each set.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/wire/records/evaluation_record.h"

namespace planwright {

class EvaluationSeries {
 public:
  static constexpr size_t kMost = 4000;

  // A loss of a set.
  struct Point {
    int64_t step = 0, samples = 0;
    double loss = 0;
  };

  void Add(const EvaluationRecord& record);

  bool empty() const { return count_ == 0; }
  int64_t count() const { return count_; }
  double seconds() const { return seconds_; }                  // of all of them
  const EvaluationRecord& newest() const { return *newest_; }  // of a run with evaluations
  // All of them, or every second, every fourth, ...
  const std::vector<EvaluationRecord>& chosen() const { return chosen_; }
  // A set whose samples were changed is another set: losses of other samples than the newest are in none of these.
  // The least loss of each set, and the first step with it. Without a finite loss a set has none.
  const std::map<std::string, Point>& best() const { return best_; }
  // The finite losses of a set in chosen().
  std::vector<Point> Curve(const std::string& set) const;
  // Of the newest evaluation.
  std::vector<std::string> sets() const;

 private:
  int64_t count_ = 0, distance_ = 1;
  double seconds_ = 0;
  std::optional<EvaluationRecord> newest_;
  std::vector<EvaluationRecord> chosen_;
  std::map<std::string, Point> best_;
  std::map<std::string, std::string> samples_digests_;  // of the newest record of each set
};

}  // namespace planwright
