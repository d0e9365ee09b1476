#include "planner/estimate/step_time.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "planner/estimate/instruction_costs.h"
#include "planner/plan/limits.h"
#include "planner/rates/device.h"

namespace planwright {
namespace {

// Module, stage, backward, microbatch.
using ActionKey = std::tuple<std::string, int, bool, int>;

ActionKey KeyOf(const StageAction& action) { return {action.module, action.stage, action.backward, action.microbatch}; }

// FLOPs of blocks, with the blocks that they call. Each block is counted once.
class BlockFlops {
 public:
  BlockFlops(const LinkedBlocks& blocks, const InstructionCosts& costs) : blocks_(blocks), costs_(costs) {}

  double Of(int block, int depth = 0) {
    if (const auto known = known_.find(block); known != known_.end()) return known->second;
    if (depth > kDeepestCalls) return 0;  // blocks that call themselves are refused elsewhere
    double flops = 0;
    for (const LinkedInstruction& instruction : blocks_.block(block).body) {
      flops += instruction.called < 0 ? costs_.flops(instruction) : Of(instruction.called, depth + 1);
    }
    return known_[block] = flops;
  }

 private:
  const LinkedBlocks& blocks_;
  const InstructionCosts& costs_;
  std::map<int, double> known_;
};

// The actions of other ranks that must be done before an action starts. A forward needs the stage before, or on the
// first stage the last stages of the encoders. A backward needs its own forward and the stage after, or on an encoder's
// last stage the language model's first.
std::vector<ActionKey> Needs(const Plan& plan, const StageAction& action) {
  std::vector<ActionKey> needs;
  const Module* module = plan.FindModule(action.module);
  const int m = action.microbatch;
  if (!action.backward) {
    if (action.stage > 0) return {{action.module, action.stage - 1, false, m}};
    for (const Bridge& bridge : plan.bridges) {
      const Module* from = bridge.to == action.module ? plan.FindModule(bridge.from) : nullptr;
      if (from) needs.push_back({from->name, from->grid.pp - 1, false, m});
    }
    return needs;
  }
  needs.push_back({action.module, action.stage, false, m});
  if (module && action.stage + 1 < module->grid.pp) {
    needs.push_back({action.module, action.stage + 1, true, m});
    return needs;
  }
  for (const Bridge& bridge : plan.bridges) {
    if (bridge.from == action.module) needs.push_back({bridge.to, 0, true, m});
  }
  return needs;
}

RoleTime TimeRole(const Plan& plan, const Role& role, LinkedBlocks& blocks, BlockFlops& flops, double speed) {
  RoleTime time;
  time.role = &role;
  // The calls of the role's own list are its actions: one for each stage, direction and microbatch.
  const LinkedBlock step = blocks.Link(role.step, blocks.instructions());
  for (const LinkedInstruction& call : step.body) {
    if (call.called < 0) continue;
    const LinkedBlock& called = blocks.block(call.called);
    const Block& block = *called.block;
    const Module* module = called.module < 0 ? nullptr : &plan.modules[called.module];
    if (!module || role.ranks.empty() || !module->grid.contains(role.ranks.front().first)) continue;
    StageAction action;
    action.module = block.module;
    action.stage = CoordinateOf(module->grid, role.ranks.front().first, Axis::kPp);
    action.microbatch = call.source->microbatch;
    action.index = call.index;
    action.backward = absl::StrContains(block.name, ".backward");
    const double work = flops.Of(call.called);
    action.end = work / speed;  // a duration, until PlaceActions turns it into a time
    time.flops += work;
    time.busy += action.end;
    time.actions.push_back(std::move(action));
  }
  return time;
}

// Places every action as early as its rank and its needs allow, and returns when the last one ends. Goes round the
// roles until nothing moves; a verified plan cannot get stuck (docs/progress.md), and of any other the rest stays
// unplaced.
double PlaceActions(const Plan& plan, std::vector<RoleTime>& roles) {
  std::map<ActionKey, double> done;  // when an action of all roles is done; -1: not placed yet
  for (const RoleTime& role : roles) {
    for (const StageAction& action : role.actions) done[KeyOf(action)] = -1;
  }
  std::vector<size_t> next(roles.size(), 0);
  std::vector<double> reached(roles.size(), 0);
  double length = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t r = 0; r < roles.size(); ++r) {
      while (next[r] < roles[r].actions.size()) {
        StageAction& action = roles[r].actions[next[r]];
        double start = reached[r];
        bool ready = true;
        for (const ActionKey& need : Needs(plan, action)) {
          const auto found = done.find(need);
          if (found == done.end()) continue;  // no role has it: a frozen part has no backward
          ready &= found->second >= 0;
          start = std::max(start, found->second);
        }
        if (!ready) break;
        const double takes = action.end;
        action.start = start;
        action.end = reached[r] = start + takes;
        // Several roles may run the same action (leaders and siblings): it is done when the slowest is.
        double& done_at = done[KeyOf(action)];
        done_at = std::max(done_at, action.end);
        length = std::max(length, action.end);
        ++next[r];
        moved = true;
      }
    }
  }
  return length;
}

}  // namespace

StepTime TimeStep(const Plan& plan) {
  StepTime time;
  LinkedBlocks blocks(plan);
  const InstructionCosts costs(blocks);
  BlockFlops flops(blocks, costs);
  const double peak = DeviceOf(plan.cluster.gpu).peak(plan.precision);
  time.seconds = peak > 0;
  for (const Role& role : plan.roles)
    time.roles.push_back(TimeRole(plan, role, blocks, flops, time.seconds ? peak * kEfficiency : 1));
  time.length = PlaceActions(plan, time.roles);
  double ranks = 0, busy = 0;
  for (const RoleTime& role : time.roles) {
    double count = 0;
    for (const RankRange& range : role.role->ranks) count += range.count;
    ranks += count;
    busy += count * role.busy;
  }
  if (ranks > 0 && time.length > 0) time.bubble = std::max(0.0, 1 - busy / (ranks * time.length));
  return time;
}

}  // namespace planwright
