#include "planner/estimate/deadlines.h"

#include <algorithm>

#include "planner/estimate/instruction_costs.h"
#include "planner/estimate/step_time.h"
#include "planner/rates/device.h"

namespace planwright {

Deadline DeadlineRule::Of(double estimate) const {
  const double later = std::max(floor, factor * estimate);
  return {later, std::max(later, first_step)};
}

DeadlineRule DeadlineRuleOf(const Plan& plan) {
  const LaunchPlan& launch = plan.launch;
  const StepTime time = TimeStep(plan);
  return {launch.deadline_floor, launch.deadline_first_step, launch.deadline_factor, time.seconds ? time.length : 0};
}

Deadlines::Deadlines(const LinkedProgram& program, const DeadlineRule& rule)
    : by_number_(program.instructions(), rule.Of(0)) {
  const Plan& plan = program.blocks().plan();
  const InstructionCosts costs(program.blocks());
  const double speed = DeviceOf(plan.cluster.gpu).peak(plan.precision) * kEfficiency;
  for (const LinkedEntry& entry : program.entries()) {
    const LinkedInstruction& instruction = *entry.instruction;
    Deadline& deadline = by_number_[instruction.number];
    if (instruction.op_class == OpClass::kCommunication) {
      deadline = rule.OfWaiting();
    } else if (instruction.number < program.blocks().instructions() && speed > 0) {
      // A role's own lists only call blocks, communicate, and change state: they have no FLOPs.
      deadline = rule.Of(costs.flops(instruction) / speed);
    }
  }
}

}  // namespace planwright
