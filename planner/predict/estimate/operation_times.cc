#include "planner/predict/estimate/operation_times.h"

#include <algorithm>
#include <map>
#include <string>

#include "planner/plan/link/program_parts.h"

namespace planwright {

std::vector<OperationTime> OperationTimesOf(const LinkedProgram& program, const std::vector<PlannedTime>& entries,
                                            InstructionTimes& times) {
  std::vector<OperationTime> operations;
  std::map<std::pair<std::string, OpKind>, size_t> known;
  std::vector<int> by_number(static_cast<size_t>(program.instructions()), -1);  // index in `operations`
  // `entries` are those of the rank with most rows. An average rank is done earlier, and waits in the next
  // communication.
  double early = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const LinkedEntry& entry = program.entries()[program.step().first + i];
    const LinkedInstruction& instruction = *entry.instruction;
    int& at = by_number[static_cast<size_t>(instruction.number)];
    if (at < 0) {
      const auto [found, is_new] =
          known.try_emplace({PartOf(program, entry), instruction.source->kind}, operations.size());
      if (is_new) {
        operations.push_back({.part = found->first.first,
                              .kind = std::string(OpName(instruction.source->kind)),
                              .communication = instruction.op_class == OpClass::kCommunication});
      }
      at = static_cast<int>(found->second);
    }
    OperationTime& operation = operations[static_cast<size_t>(at)];
    operation.times += 1;
    operation.seconds += entries[i].length;
    if (operation.communication) {
      operation.waited += entries[i].waited + early;
      operation.seconds += entries[i].waited + early;
      early = 0;
    } else {
      const double spread = std::min(entries[i].length, times.of(entry).spread);
      operation.seconds -= spread, early += spread;
    }
  }
  return operations;
}

}  // namespace planwright
