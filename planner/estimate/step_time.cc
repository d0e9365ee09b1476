#include "planner/estimate/step_time.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/match.h"
#include "planner/estimate/device.h"
#include "planner/estimate/instruction_costs.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

// Module, stage, backward, microbatch.
using ActionKey = std::tuple<std::string, int, bool, int>;

ActionKey KeyOf(const StageAction& action) { return {action.module, action.stage, action.backward, action.microbatch}; }

// FLOPs of a block with the blocks that it calls, each read once.
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

// What must be over before an action starts, beside what its own rank did before.
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
    action.backward = absl::StrContains(block.name, ".backward");
    const double work = flops.Of(call.called);
    action.end = work / speed;  // until it is placed: how long it takes
    time.flops += work;
    time.busy += action.end;
    time.actions.push_back(std::move(action));
  }
  return time;
}

// Places every action as early as its rank and its needs allow.
double Place(const Plan& plan, std::vector<RoleTime>& roles) {
  std::map<ActionKey, double> done;  // -1: planned by some role, not placed yet
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
          if (found == done.end()) continue;  // a frozen part has no backward
          ready &= found->second >= 0;
          start = std::max(start, found->second);
        }
        if (!ready) break;
        const double takes = action.end;
        action.start = start;
        action.end = reached[r] = start + takes;
        double& over = done[KeyOf(action)];
        over = std::max(over, action.end);
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
  time.length = Place(plan, time.roles);
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

std::vector<StageLoad> StageLoads(const StepTime& time) {
  std::vector<StageLoad> loads;
  for (const RoleTime& role : time.roles) {
    for (const StageAction& action : role.actions) {
      if (action.microbatch != role.actions.front().microbatch) continue;
      const auto same = [&](const StageLoad& load) {
        return load.module == action.module && load.stage == action.stage;
      };
      if (std::any_of(loads.begin(), loads.end(), same)) continue;
      const double share = role.busy > 0 ? role.flops / role.busy : 0;
      StageLoad load{action.module, action.stage, 0};
      for (const StageAction& other : role.actions) {
        if (other.module == action.module && other.microbatch == action.microbatch)
          load.flops += (other.end - other.start) * share;
      }
      loads.push_back(std::move(load));
    }
  }
  return loads;
}

}  // namespace planwright
