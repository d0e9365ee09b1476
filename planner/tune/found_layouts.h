// Layouts that were simulated whole: the fastest, in order.
#pragma once

#include <limits>
#include <set>
#include <vector>

#include "planner/tune/whole_step.h"

namespace planwright {

struct FoundLayout {
  Candidate candidate;
  WholeStep step;
};

class FoundLayouts {
 public:
  void Add(FoundLayout found) {
    seconds_.insert(found.step.seconds);
    layouts_.push_back(std::move(found));
  }
  const std::vector<FoundLayout>& layouts() const { return layouts_; }
  bool empty() const { return layouts_.empty(); }
  // Seconds of the n-th fastest, from 0; infinite where there are not so many.
  double Fastest(size_t n = 0) const {
    if (n >= seconds_.size()) return std::numeric_limits<double>::infinity();
    return *std::next(seconds_.begin(), static_cast<std::ptrdiff_t>(n));
  }
  // Fastest first; of equal ones the one with least memory, and then the one that changes least of the recipe.
  std::vector<FoundLayout> Sorted(const Recipe& recipe) const;

 private:
  std::vector<FoundLayout> layouts_;
  std::multiset<double> seconds_;
};

}  // namespace planwright
