// Layouts that were simulated whole: the fastest, in order.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/search/whole_step.h"

namespace planwright {

struct FoundLayout {
  Candidate candidate;
  WholeStep step;
};

// Several candidates may make the same plan: of these, it keeps the one that changes least of the recipe.
class FoundLayouts {
 public:
  // Keeps a reference.
  explicit FoundLayouts(const TunedRecipe& tuned) : tuned_(tuned) {}

  void Add(FoundLayout found);
  const std::vector<FoundLayout>& layouts() const { return layouts_; }
  bool empty() const { return layouts_.empty(); }
  // Seconds of the n-th fastest, from 0; infinite where there are not so many.
  double Fastest(size_t n = 0) const {
    if (n >= seconds_.size()) return std::numeric_limits<double>::infinity();
    return *std::next(seconds_.begin(), static_cast<std::ptrdiff_t>(n));
  }
  // Fastest first; of equal ones the one with least memory, and then the one that changes least of the recipe.
  std::vector<FoundLayout> Sorted() const;

 private:
  const std::string& DigestOf(size_t index);

  const TunedRecipe& tuned_;
  std::vector<FoundLayout> layouts_;
  std::vector<std::string> digests_;                                      // of `layouts_`; empty: not asked for yet
  std::map<std::pair<double, int64_t>, std::vector<size_t>> by_figures_;  // seconds and memory, to indices
  std::multiset<double> seconds_;
};

}  // namespace planwright
