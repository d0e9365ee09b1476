#include "planner/predict/estimate/deadlines.h"

#include <algorithm>

#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/estimate/until_stop.h"

namespace planwright {

Deadline DeadlineRule::Of(double estimate) const {
  const double later = std::max(floor, factor * estimate);
  return {later, std::max(later, first_step)};
}

Deadline DeadlineRule::OfScore() const {
  const Deadline waiting = OfWaiting();
  return {waiting.later * static_cast<double>(rounds), waiting.first * static_cast<double>(rounds)};
}

DeadlineRule DeadlineRuleOf(const Plan& plan) {
  const LaunchPlan& launch = plan.launch;
  return {launch.deadline_floor, launch.deadline_first_step, launch.deadline_factor, PredictedStep(plan),
          std::max<int64_t>(1, plan.evaluation.rounds())};
}

Deadlines::Deadlines(const LinkedProgram& program, const DeadlineRule& rule)
    : by_number_(program.instructions(), rule.Of(0)) {
  const Plan& plan = program.blocks().plan();
  const Rates rates = RatesOf(plan);
  const InstructionCosts costs(program.blocks());
  CommunicationUses uses(plan);
  const std::vector<RankClass> classes = ClassesOf(plan);
  // The first class of a role has the most samples.
  const auto ranks = std::find_if(classes.begin(), classes.end(), [&](const RankClass& of) {
    return plan.roles[static_cast<size_t>(of.role)].name == program.role().name;
  });
  if (ranks == classes.end()) return;
  InstructionTimes times(program, costs, rates, uses, *ranks);
  const LinkedProgram::Range score = program.score();
  for (size_t i = 0; i < program.entries().size(); ++i) {
    const LinkedEntry& entry = program.entries()[i];
    const LinkedInstruction& instruction = *entry.instruction;
    Deadline& deadline = by_number_[instruction.number];
    if (instruction.op_class == OpClass::kCommunication) {
      deadline = i >= score.first && i < score.end ? rule.OfScore() : rule.OfWaiting();
    } else if (rates.known()) {
      // Two that are done as one run at the place of the second.
      deadline = rule.Of(times.of(times.IsDoneBefore(entry) ? program.entries()[i - 1] : entry).seconds);
    }
  }
}

}  // namespace planwright
