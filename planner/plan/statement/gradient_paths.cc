#include "planner/plan/statement/gradient_paths.h"

#include <algorithm>
#include <set>

#include "planner/base/text/text.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;

// Some backward of the kind gives a gradient to its input `i`, or the gradient is passed.
bool GivesGradientTo(OpKind kind, size_t i) {
  if (InfoOf(kind).PassesGradient(i)) return true;
  return std::any_of(AllOps().begin(), AllOps().end(), [&](const OpInfo& info) {
    return std::any_of(info.transposes.begin(), info.transposes.end(), [&](const GradientRule& rule) {
      return rule.forward() == kind &&
             std::any_of(rule.results.begin(), rule.results.end(), [&](const GradientOperand& result) {
               return result.kind == GradientOperand::Kind::kInputGradient && result.index == i;
             });
    });
  });
}

// The gradient begins there: what the kind makes is added to the loss.
bool BeginsGradient(OpKind kind) {
  return std::any_of(AllOps().begin(), AllOps().end(), [&](const OpInfo& info) {
    return std::any_of(info.transposes.begin(), info.transposes.end(),
                       [&](const GradientRule& rule) { return rule.starts_gradient() && rule.forward() == kind; });
  });
}

}  // namespace

void CheckGradientPaths(const string& name, const StatedPiece& piece, const std::vector<RankPiece::Compute>& computes,
                        ProblemList& problems) {
  std::set<string> leading(piece.outputs.begin(), piece.outputs.end());
  for (auto compute = computes.rbegin(); compute != computes.rend(); ++compute) {
    const StatedCompute& stated = *compute->stated;
    const bool leads =
        BeginsGradient(stated.kind) || std::any_of(stated.outputs.begin(), stated.outputs.end(),
                                                   [&](const string& output) { return leading.contains(output); });
    for (size_t i = 0; leads && i < stated.inputs.size(); ++i) {
      if (GivesGradientTo(stated.kind, i)) leading.insert(stated.inputs[i]);
    }
    for (const string& slot : leads ? std::vector<string>() : compute->instruction.parameters) {
      const bool trained = std::any_of(piece.weights.begin(), piece.weights.end(), [&](const StatedWeight& weight) {
        return weight.slot == slot && weight.form != StatedWeight::Form::kBuffer;
      });
      const bool shared = std::any_of(piece.shared.begin(), piece.shared.end(),
                                      [&](const StatedShare& share) { return share.slot == slot; });
      if (trained || shared)
        problems.Add(PlaceOf(stated.line, slot, "="),
                     Cat("piece ", name, ": slot ", slot, " gets no gradient, since nothing that ", OpName(stated.kind),
                         " makes here leads to the loss"));
    }
  }
}

}  // namespace planwright
