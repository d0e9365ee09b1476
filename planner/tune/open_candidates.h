// Candidates that were timed from blocks and not yet simulated, the least bound first. They are many, so each is a few
// numbers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace planwright {

struct TimedCandidate {
  double seconds = 0;  // bounds
  int64_t memory = 0;
  uint32_t order = 0;                         // in which they were found
  uint32_t placing = 0, micro = 0, step = 0;  // indices in the space
  uint32_t layouts = 0;                       // where its layouts begin in OpenCandidates::layouts
};

class OpenCandidates {
 public:
  // A layout of a module: its index among those of its placing, and that of its way.
  struct Layout {
    uint32_t layout = 0, way = 0;
  };

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  double least() const { return heap_.front().seconds; }

  uint32_t AddLayouts(const std::vector<Layout>& layouts) {
    layouts_.insert(layouts_.end(), layouts.begin(), layouts.end());
    return static_cast<uint32_t>(layouts_.size() - layouts.size());
  }
  const Layout* layouts(const TimedCandidate& of) const { return layouts_.data() + of.layouts; }

  void Add(TimedCandidate candidate) {
    candidate.order = ++order_;
    heap_.push_back(candidate);
    std::push_heap(heap_.begin(), heap_.end(), Later);
  }
  void Reopen(const std::vector<TimedCandidate>& candidates) {
    heap_.insert(heap_.end(), candidates.begin(), candidates.end());
    std::make_heap(heap_.begin(), heap_.end(), Later);
  }
  TimedCandidate Next() {
    std::pop_heap(heap_.begin(), heap_.end(), Later);
    const TimedCandidate next = heap_.back();
    heap_.pop_back();
    return next;
  }
  // Takes out those with bounds up to `seconds`, the least bound first.
  std::vector<TimedCandidate> TakeUpTo(double seconds) {
    std::vector<TimedCandidate> taken;
    while (!heap_.empty() && least() <= seconds) taken.push_back(Next());
    return taken;
  }
  // Drops those above `seconds`, and returns how many.
  size_t DropAbove(double seconds) {
    const size_t dropped =
        std::erase_if(heap_, [&](const TimedCandidate& candidate) { return candidate.seconds > seconds; });
    std::make_heap(heap_.begin(), heap_.end(), Later);
    return dropped;
  }

 private:
  static bool Later(const TimedCandidate& a, const TimedCandidate& b) {
    return std::tie(a.seconds, a.memory, a.order) > std::tie(b.seconds, b.memory, b.order);
  }

  std::vector<TimedCandidate> heap_;
  std::vector<Layout> layouts_;
  uint32_t order_ = 0;
};

}  // namespace planwright
