#include "planner/views/show/timeline.h"

#include <algorithm>
#include <charconv>

namespace planwright {
namespace {

// The stages whose forward feeds stage `i`: the one before it in its module, or the last ones of the modules bridged
// into it.
std::vector<size_t> Feeders(const Plan& plan, size_t i) {
  const StageSchedule& stage = plan.schedule[i];
  std::vector<size_t> feeders;
  for (size_t j = 0; j < plan.schedule.size(); ++j) {
    const StageSchedule& other = plan.schedule[j];
    bool feeds = other.module == stage.module && other.stage == stage.stage - 1;
    if (stage.stage == 0) {
      const Module* module = plan.FindModule(other.module);
      for (const Bridge& bridge : plan.bridges) {
        feeds |=
            bridge.to == stage.module && bridge.from == other.module && module && other.stage == module->grid.pp - 1;
      }
    }
    if (feeds) feeders.push_back(j);
  }
  return feeders;
}

// The ranks of one pipeline stage. pp is the slowest axis of a grid, so they are consecutive.
RankRange RanksOfStage(const Grid& grid, int stage) {
  const int count = grid.ranks() / std::max(1, grid.pp);
  return {grid.first_rank + stage * count, count, 1};
}

// Both ranges have stride 1.
bool Overlap(const RankRange& a, const RankRange& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

TimelineRow RowOf(const Plan& plan, const StageSchedule& stage) {
  TimelineRow row{stage.module, stage.stage, stage.warmup, {0, 0, 1}, {}, 0};  // no ranks if the plan lacks the module
  if (const Module* module = plan.FindModule(stage.module)) row.ranks = RanksOfStage(module->grid, stage.stage);
  for (const std::string& text : stage.order) {
    TimelineOp op{text.starts_with("B"), 0, -1};
    std::from_chars(text.data() + 1, text.data() + text.size(), op.microbatch);
    row.ops.push_back(op);
  }
  return row;
}

// Gives every operation its slot: again and again it places the operation that can start earliest, of equal ones that
// of the first row. So rows on the same ranks take turns in the order in which their inputs arrive.
class SlotPlacer {
 public:
  explicit SlotPlacer(const Plan& plan) {
    for (const StageSchedule& stage : plan.schedule) timeline_.rows.push_back(RowOf(plan, stage));
    const size_t n = timeline_.rows.size();
    next_.resize(n);
    feeders_.resize(n);
    fed_.resize(n);
    done_[0].resize(n);
    done_[1].resize(n);
    for (size_t i = 0; i < n; ++i) {
      feeders_[i] = Feeders(plan, i);
      for (size_t feeder : feeders_[i]) fed_[feeder].push_back(i);
      size_t clock = 0;  // the first row on these ranks: colocated rows share its clock
      while (!Overlap(timeline_.rows[clock].ranks, timeline_.rows[i].ranks) && clock < i) ++clock;
      clock_.push_back(clock);
      int microbatches = 0;
      for (const TimelineOp& op : timeline_.rows[i].ops) microbatches = std::max(microbatches, op.microbatch + 1);
      for (auto& done : done_) done[i].assign(microbatches, -1);
    }
    free_.resize(n);
    busy_.resize(n);
  }

  Timeline Run() {
    while (PlaceNext()) {
    }
    for (size_t i = 0; i < timeline_.rows.size(); ++i) timeline_.rows[i].busy = busy_[clock_[i]];
    return std::move(timeline_);
  }

 private:
  // The first slot in which row `i` could run its next operation. -1: it has none, or waits for one without a slot.
  int EarliestOf(size_t i) const {
    const TimelineRow& row = timeline_.rows[i];
    if (next_[i] == row.ops.size()) return -1;
    const TimelineOp& op = row.ops[next_[i]];
    int earliest = free_[clock_[i]];
    // A forward needs the forward of each stage before it, a backward the backward of each stage behind it. That the
    // backward of the last stage needs its own forward follows from the stage's order.
    for (size_t other : op.backward ? fed_[i] : feeders_[i]) {
      const std::vector<int>& done = done_[op.backward][other];
      if (op.microbatch >= static_cast<int>(done.size()) || done[op.microbatch] < 0) return -1;
      earliest = std::max(earliest, done[op.microbatch] + 1);
    }
    return earliest;
  }

  // False when nothing more can run: all is placed, or what is left waits in a circle.
  bool PlaceNext() {
    size_t best = timeline_.rows.size();
    int start = -1;
    for (size_t i = 0; i < timeline_.rows.size(); ++i) {
      const int earliest = EarliestOf(i);
      if (earliest >= 0 && (start < 0 || earliest < start)) best = i, start = earliest;
    }
    if (start < 0) return false;
    TimelineOp& op = timeline_.rows[best].ops[next_[best]++];
    op.start = done_[op.backward][best][op.microbatch] = start;
    free_[clock_[best]] = start + 1;
    ++busy_[clock_[best]];
    timeline_.slots = std::max(timeline_.slots, start + 1);
    return true;
  }

  Timeline timeline_;
  std::vector<size_t> next_;      // of each row: its next operation
  std::vector<size_t> clock_;     // of each row: the first row on its ranks
  std::vector<int> free_, busy_;  // of each `clock_`: the next free slot, and how many slots are taken
  std::vector<std::vector<size_t>> feeders_, fed_;
  std::vector<std::vector<int>> done_[2];  // [backward][stage][microbatch]: its slot
};

}  // namespace

std::string TimelineOpText(const TimelineOp& op) { return (op.backward ? "B" : "F") + std::to_string(op.microbatch); }

Timeline TimelineOf(const Plan& plan) { return SlotPlacer(plan).Run(); }

std::vector<StageAction> ActionsOf(const StepTime& time, const TimelineRow& row) {
  std::vector<StageAction> actions;
  for (const RoleTime& role : time.roles) {
    for (const StageAction& action : role.actions) {
      if (action.module == row.module && action.stage == row.stage) actions.push_back(action);
    }
    if (!actions.empty()) break;
  }
  return actions;
}

double EmptyTimeOf(const StepTime& time, const TimelineRow& row) {
  double most = -1;
  for (const RoleTime& role : time.roles) {
    for (const RankRange& range : role.ranks) {
      const int last = range.first + (range.count - 1) * range.stride;
      if (last >= row.ranks.first && range.first < row.ranks.first + row.ranks.count)
        most = std::max(most, role.waiting + role.launching);
    }
  }
  return most;
}

}  // namespace planwright
