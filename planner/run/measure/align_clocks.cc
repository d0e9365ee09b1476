#include "planner/run/measure/align_clocks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace planwright {
namespace {

// What must be added to the clock of one machine so that it is that of another: in this interval, in nanoseconds.
struct Offset {
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

  // Two clocks that run apart, or a clock of a device, may leave nothing between.
  std::optional<int64_t> middle() const {
    if (least == std::numeric_limits<int64_t>::min() || most == std::numeric_limits<int64_t>::max())
      return std::nullopt;
    return least + (most - least) / 2;
  }
};

void Shift(Trace& trace, int64_t nanoseconds) {
  for (TraceInstruction& instruction : trace.instructions) {
    instruction.launch_begin += nanoseconds, instruction.launch_end += nanoseconds;
    instruction.begin += nanoseconds, instruction.end += nanoseconds;
  }
}

// Whether each member needs something of every other before it is done.
bool AllNeedAll(OpKind kind) {
  return kind == OpKind::kAllReduce || kind == OpKind::kAllGather || kind == OpKind::kReduceScatter ||
         kind == OpKind::kAllToAll;
}

}  // namespace

void AlignClocks(const RankPrograms& ranks, std::vector<Trace>& traces) {
  for (Trace& trace : traces) {
    if (trace.host != traces.front().host) Shift(trace, trace.wall_of_zero - traces.front().wall_of_zero);
  }
  std::map<std::pair<std::string, std::string>, Offset> offsets;  // of the second's clock to the first's
  for (size_t r = 0; r < traces.size(); ++r) {
    const auto [first, end] = ranks.programs()[r]->step();
    const size_t entries = end - first;
    for (size_t i = 0; i < traces[r].instructions.size(); ++i) {
      if (!AllNeedAll(ranks.programs()[r]->entries()[first + i % entries].instruction->source->kind)) continue;
      for (const StepEntry& met : ranks.matches().of(static_cast<int>(r), i % entries)) {
        const Trace& other = traces[static_cast<size_t>(met.role)];
        if (other.host == traces[r].host) continue;
        const size_t of_other = other.instructions.size() / static_cast<size_t>(other.steps.count());
        const TraceInstruction& theirs = other.instructions[i / entries * of_other + met.entry];
        Offset& offset = offsets[{traces[r].host, other.host}];
        offset.most = std::min(offset.most, traces[r].instructions[i].end - theirs.begin);
        offset.least = std::max(offset.least, traces[r].instructions[i].begin - theirs.end);
      }
    }
  }
  // From machine to machine that is tied to one before it.
  std::map<std::string, int64_t> moved = {{traces.front().host, 0}};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [hosts, offset] : offsets) {
      if (!moved.contains(hosts.first) || moved.contains(hosts.second) || !offset.middle()) continue;
      moved[hosts.second] = moved[hosts.first] + *offset.middle();
      more = true;
    }
  }
  for (Trace& trace : traces) {
    if (const auto found = moved.find(trace.host); found != moved.end()) Shift(trace, found->second);
  }
}

}  // namespace planwright
