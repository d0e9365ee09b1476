#include "planner/run/measure/step_uses.h"

#include <algorithm>
#include <optional>

#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/simulate/replayed_step.h"

namespace planwright {

void StepUses::Add(const Plan& plan) {
  const RankPrograms ranks(plan);
  const InstructionCosts costs(ranks.blocks());
  CommunicationUses communications(ranks.plan());
  const Rates rates = RatesOf(plan);
  const std::vector<RankClass> classes = ClassesOf(ranks.plan());  // each rank is a role, and so one class
  const int on_node = std::min(plan.world_size, plan.cluster.gpus_per_node);
  const double share = 1.0 / static_cast<double>(ranks.programs().size());
  for (size_t r = 0; r < ranks.programs().size(); ++r) {
    const LinkedProgram& program = *ranks.programs()[r];
    const InstructionTimes uses(program, costs, rates, communications, classes[r]);
    const auto [first, end] = program.step();
    for (size_t i = first; i < end; ++i) {
      const LinkedEntry& entry = program.entries()[i];
      if (uses.IsDoneBefore(entry)) continue;  // the one before it has the launch, too
      launches_[{entry.instruction->source->kind, on_node}] += share;
      if (const std::optional<ComputeUse> use = uses.ComputeOf(entry))
        compute_[{use->kind, use->dtype, use->flops, use->bytes, on_node}] += share;
    }
  }
}

double StepUses::Of(const MeasuredCompute& point) const {
  const auto found = compute_.find({point.kind, point.dtype, point.flops, point.bytes, point.ranks});
  return found == compute_.end() ? 1 : found->second;
}

double StepUses::Of(const MeasuredLaunch& point) const {
  const auto found = launches_.find({point.kind, point.ranks});
  return found == launches_.end() ? 1 : found->second;
}

}  // namespace planwright
