#include "planner/predict/estimate/communications_of_step.h"

#include <optional>

#include "planner/predict/estimate/instruction_times.h"

namespace planwright {

void ForEachCommunication(const Plan& plan,
                          const std::function<void(const Instruction&, const CommunicationUse&)>& visit) {
  LinkedBlocks blocks(plan);
  const InstructionCosts costs(blocks);
  CommunicationUses communications(plan);
  const Rates rates = RatesOf(plan);
  for (const RankClass& ranks : ClassesOf(plan)) {
    const LinkedProgram program(blocks, plan.roles[static_cast<size_t>(ranks.role)]);
    const InstructionTimes times(program, costs, rates, communications, ranks);
    for (size_t i = program.step().first; i < program.step().end; ++i) {
      const LinkedEntry& entry = program.entries()[i];
      const std::optional<CommunicationUse> use = times.CommunicationOf(entry);
      if (use && use->members >= 2 && use->bytes >= 1) visit(*entry.instruction->source, *use);
    }
  }
}

}  // namespace planwright
