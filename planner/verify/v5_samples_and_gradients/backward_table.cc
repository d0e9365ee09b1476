#include "planner/verify/v5_samples_and_gradients/backward_table.h"

#include <algorithm>

namespace planwright {

const GradientRule* RuleOfBackward(const Instruction& instruction) {
  const GradientRule* found = nullptr;
  for (const GradientRule& rule : InfoOf(instruction.kind).transposes) {
    if (!found || (rule.over_cp && instruction.over_cp())) found = &rule;
  }
  return found;
}

bool HasInputGradient(OpKind forward, size_t index) {
  const auto gives = [&](const GradientRule& rule) {
    return rule.forward() == forward &&
           std::any_of(rule.results.begin(), rule.results.end(), [&](const GradientOperand& result) {
             return result.kind == GradientOperand::Kind::kInputGradient && result.index == index;
           });
  };
  return std::any_of(AllOps().begin(), AllOps().end(), [&](const OpInfo& info) {
    return std::any_of(info.transposes.begin(), info.transposes.end(), gives);
  });
}

}  // namespace planwright
