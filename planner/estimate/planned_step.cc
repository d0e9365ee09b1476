#include "planner/estimate/planned_step.h"

#include <algorithm>
#include <map>

#include "planner/estimate/instruction_costs.h"
#include "planner/rates/device.h"

namespace planwright {
namespace {

// The call of the role's own list in which an entry lies: its index there; -1: the entry is in no call.
int OuterIndex(const LinkedProgram& program, const LinkedEntry& entry) {
  int index = -1;
  for (int call = static_cast<int>(entry.call); program.calls()[call].parent >= 0;
       call = program.calls()[call].parent) {
    index = program.calls()[call].index;
  }
  return index;
}

}  // namespace

std::vector<PlannedTime> PlanInstructions(const LinkedProgram& program, const RoleTime& time) {
  const LinkedBlocks& blocks = program.blocks();
  const InstructionCosts costs(blocks);
  const double speed = DeviceOf(blocks.plan().cluster.gpu).peak(blocks.plan().precision) * kEfficiency;
  std::map<int, int> action_at;  // by index
  std::vector<double> reached;   // by action
  for (size_t i = 0; i < time.actions.size(); ++i) {
    action_at[time.actions[i].index] = static_cast<int>(i);
    reached.push_back(time.actions[i].start);
  }
  std::vector<PlannedTime> planned;
  double last = 0;
  for (size_t i = program.step().first; i < program.step().end; ++i) {
    const LinkedEntry& entry = program.entries()[i];
    PlannedTime& at = planned.emplace_back();
    const auto action = action_at.find(OuterIndex(program, entry));
    if (action == action_at.end()) {
      at.start = last;
      continue;
    }
    at.action = action->second;
    at.start = reached[at.action];
    // A role's own lists have no FLOPs, and what an action calls is in blocks.
    if (speed > 0 && entry.instruction->number < blocks.instructions())
      at.length = costs.flops(*entry.instruction) / speed;
    last = reached[at.action] = at.start + at.length;
  }
  return planned;
}

}  // namespace planwright
