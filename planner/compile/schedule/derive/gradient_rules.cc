#include "planner/compile/schedule/derive/gradient_rules.h"

#include <algorithm>

namespace planwright {
namespace {

bool Has(const std::vector<GradientOperand>& list, GradientOperand::Kind kind, size_t index) {
  return std::any_of(list.begin(), list.end(), [&](const GradientOperand& operand) {
    return operand.kind == kind && operand.link == 0 && operand.index == index;
  });
}

// The step of the kind that reads an output of another step, or what an all_reduce made of it.
std::optional<size_t> ReaderOf(const DerivedPiece& piece, size_t step, OpKind kind) {
  for (size_t reader = 0; reader < piece.forward.size(); ++reader) {
    if (piece.forward[reader].kind != kind) continue;
    for (size_t output : piece.forward[step].outputs) {
      for (size_t input : piece.forward[reader].inputs) {
        if (input == output || input == ReducedForm(piece, output)) return reader;
      }
    }
  }
  return std::nullopt;
}

// The steps of a rule's chain that begins with `step`; none if one is missing that may not be.
std::optional<std::vector<std::optional<size_t>>> ChainFrom(const DerivedPiece& piece, size_t step,
                                                            const GradientRule& rule) {
  std::vector<std::optional<size_t>> chain = {step};
  size_t last = step;
  for (size_t link = 1; link < rule.chain.size(); ++link) {
    chain.push_back(ReaderOf(piece, last, rule.chain[link].kind));
    if (chain.back()) last = *chain.back();
    if (!chain.back() && !rule.chain[link].optional) return std::nullopt;
  }
  return chain;
}

}  // namespace

size_t ReducedForm(const DerivedPiece& piece, size_t value) {
  for (const DerivedStep& step : piece.forward) {
    if (step.kind == OpKind::kAllReduce && step.inputs.front() == value) return step.outputs.front();
  }
  return value;
}

std::vector<BackwardKind> BackwardKindsOf(const DerivedPiece& piece, size_t step) {
  const Instruction forward = {.kind = piece.forward[step].kind, .attributes = piece.forward[step].attributes};
  std::vector<BackwardKind> kinds;
  for (const OpInfo& info : AllOps()) {
    const GradientRule* rule = nullptr;
    for (const GradientRule& each : info.transposes) {
      // A rule for cp follows the plain one.
      if (each.forward() == forward.kind && (!each.over_cp || forward.over_cp())) rule = &each;
    }
    if (!rule) continue;
    if (auto chain = ChainFrom(piece, step, *rule)) kinds.push_back({&info, rule, *std::move(chain)});
  }
  std::stable_partition(kinds.begin(), kinds.end(),
                        [](const BackwardKind& kind) { return kind.rule->results.empty(); });
  return kinds;
}

bool GivesGradient(const DerivedPiece& piece, size_t step, size_t input) {
  if (InfoOf(piece.forward[step].kind).PassesGradient(input)) return true;
  const std::vector<BackwardKind> kinds = BackwardKindsOf(piece, step);
  return std::any_of(kinds.begin(), kinds.end(), [&](const BackwardKind& kind) {
    return Has(kind.rule->results, GradientOperand::Kind::kInputGradient, input);
  });
}

bool WantsGradient(const DerivedPiece& piece, size_t step, size_t output) {
  if (InfoOf(piece.forward[step].kind).passes_gradient)
    return piece.type(piece.forward[step].outputs[output]).dtype != DType::kInt64;
  const std::vector<BackwardKind> kinds = BackwardKindsOf(piece, step);
  return std::any_of(kinds.begin(), kinds.end(), [&](const BackwardKind& kind) {
    return Has(kind.rule->operands, GradientOperand::Kind::kOutputGradient, output);
  });
}

}  // namespace planwright
