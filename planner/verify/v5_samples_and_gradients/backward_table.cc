#include "planner/verify/v5_samples_and_gradients/backward_table.h"

#include <algorithm>

namespace planwright {

std::vector<const GradientRule*> RulesOfBackward(const Instruction& instruction) {
  std::vector<const GradientRule*> found;
  for (const GradientRule& rule : InfoOf(instruction.kind).transposes) {
    if (!rule.over_cp) {
      found.push_back(&rule);
    } else if (instruction.over_cp()) {
      found.back() = &rule;  // it follows the plain one
    }
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
