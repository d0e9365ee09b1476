#include "planner/predict/estimate/time_use.h"

#include <algorithm>

namespace planwright {
namespace {

// Of millions of entries: no larger than it must be.
struct Interval {
  double begin = 0, end = 0;
  uint32_t entry = 0;
  int waits_for = -1;  // a role
};

// Time that is taken, as intervals that ascend and do not touch.
class Taken {
 public:
  // Takes what is free of the intervals, which are sorted by their begin. Calls free(interval, seconds) for each.
  template <typename Free>
  void Add(const std::vector<Interval>& intervals, Free free) {
    std::vector<Interval> all;
    all.reserve(taken_.size() + intervals.size());
    size_t t = 0;
    const auto join = [&](const Interval& next) {
      if (!all.empty() && next.begin <= all.back().end) {
        all.back().end = std::max(all.back().end, next.end);
      } else {
        all.push_back(next);
      }
    };
    size_t first = 0;    // of taken_: what may reach into the next interval
    double own_end = 0;  // what earlier ones of these intervals have taken ends here
    for (const Interval& interval : intervals) {
      while (t < taken_.size() && taken_[t].begin <= interval.begin) join(taken_[t++]);
      double at = std::max(interval.begin, own_end), seconds = 0;
      while (first < taken_.size() && taken_[first].end <= at) ++first;
      for (size_t i = first; i < taken_.size() && taken_[i].begin < interval.end && at < interval.end; ++i) {
        seconds += std::max(0.0, taken_[i].begin - at);
        at = std::max(at, taken_[i].end);
      }
      seconds += std::max(0.0, interval.end - at);
      own_end = std::max(own_end, interval.end);
      if (interval.end > interval.begin) join(interval);
      free(interval, seconds);
    }
    while (t < taken_.size()) join(taken_[t++]);
    taken_ = std::move(all);
  }

 private:
  std::vector<Interval> taken_;
};

void Sort(std::vector<Interval>& intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.entry < b.entry;
  });
}

constexpr int kFurthestBack = 64;  // entries of one role

// The role that keeps others waiting from `from` to `until`, if `last` is the member that came at `until`: while that
// waited for another role itself, the other one.
int Blamed(const SimulatedStep& step, StepEntry last, double from, double until) {
  const auto entry_at = [&](const StepEntry& of) -> const SimulatedEntry& {
    return step.roles[static_cast<size_t>(of.role)].entries[of.entry];
  };
  StepEntry at = last;
  for (int back = 0; back < kFurthestBack && entry_at(at).after >= 0; ++back) {
    at.entry = static_cast<uint32_t>(entry_at(at).after);
    const SimulatedEntry& before = entry_at(at);
    if (before.end <= from) break;
    if (before.last.role < 0) continue;
    // It waited too. The longer part of the time decides.
    if (std::min(before.start, until) - std::max(before.arrived, from) < (until - from) / 2) continue;
    at = before.last, last = before.last, back = 0;
    until = before.start;
  }
  return last.role;
}

// The role that ends last: all others wait for it at the end of the step.
int LastRole(const SimulatedStep& step) {
  const auto last = std::max_element(step.roles.begin(), step.roles.end(),
                                     [](const SimulatedRole& a, const SimulatedRole& b) { return a.end < b.end; });
  return static_cast<int>(last - step.roles.begin());
}

}  // namespace

TimeUse TimeUseOf(const LinkedProgram& program, const SimulatedStep& step, size_t index) {
  const SimulatedRole& role = step.roles[index];
  TimeUse use{.shown = std::vector<double>(role.entries.size(), 0),
              .waited_for = std::vector<double>(step.roles.size(), 0)};
  const auto communicates = [&](size_t i) {
    return program.entries()[program.step().first + i].instruction->op_class == OpClass::kCommunication;
  };
  size_t communications = 0, waits = 1;
  for (size_t i = 0; i < role.entries.size(); ++i) {
    communications += communicates(i) ? 1 : 0;
    waits += role.entries[i].start > role.entries[i].arrived ? 1 : 0;
  }
  std::vector<Interval> work, communication, waiting;
  work.reserve(role.entries.size() - communications), communication.reserve(communications), waiting.reserve(waits);
  for (uint32_t i = 0; i < role.entries.size(); ++i) {
    const SimulatedEntry& entry = role.entries[i];
    if (entry.end > entry.start) (communicates(i) ? communication : work).push_back({entry.start, entry.end, i});
    if (entry.start > entry.arrived)
      waiting.push_back({entry.arrived, entry.start, i, Blamed(step, entry.last, entry.arrived, entry.start)});
  }
  if (step.length > role.end)
    waiting.push_back({role.end, step.length, static_cast<uint32_t>(role.entries.size()), LastRole(step)});
  Taken taken;
  for (std::vector<Interval>* intervals : {&work, &communication, &waiting}) Sort(*intervals);
  taken.Add(work, [&](const Interval& interval, double seconds) {
    use.busy += seconds;
    use.shown[interval.entry] = seconds;
  });
  taken.Add(communication, [&](const Interval& interval, double seconds) {
    use.communication += seconds;
    use.shown[interval.entry] = seconds;
  });
  taken.Add(waiting, [&](const Interval& interval, double seconds) {
    use.waiting += seconds;
    if (interval.waits_for >= 0) use.waited_for[static_cast<size_t>(interval.waits_for)] += seconds;
  });
  use.launching = std::max(0.0, step.length - use.busy - use.communication - use.waiting);
  return use;
}

}  // namespace planwright
