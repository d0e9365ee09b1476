#include "planner/plan/expert_ops.h"

#include <algorithm>
#include <string>
#include <vector>

#include "planner/plan/op_table.h"

namespace planwright {
namespace {

// What the table says of one kind.
struct ExpertFacts {
  std::optional<size_t> choices;
  bool uses_weights = false;
};

ExpertFacts FactsOf(const OpInfo& info) {
  ExpertFacts facts;
  if (!info.signature) return facts;
  const OpSignature& signature = *info.signature;
  for (size_t i = 0; i < signature.outputs.size() && !facts.choices; ++i) {
    const OperandSignature& output = signature.outputs[i];
    if (output.dtype == OperandSignature::DTypeClass::kInt64 && !output.of_rank && IsOfTokens(output) &&
        output.dims.size() == 2)
      facts.choices = i;
  }
  facts.uses_weights =
      !signature.parameters.empty() && std::any_of(signature.inputs.begin(), signature.inputs.end(),
                                                   [](const OperandSignature& input) { return input.of_rank; });
  return facts;
}

// Of all kinds, in the order of OpKind.
const ExpertFacts& FactsOf(OpKind kind) {
  static const std::vector<ExpertFacts> facts = [] {
    std::vector<ExpertFacts> of_kinds;
    for (const OpInfo& info : AllOps()) of_kinds.push_back(FactsOf(info));
    return of_kinds;
  }();
  return facts[static_cast<size_t>(kind)];
}

}  // namespace

std::optional<size_t> ChoicesOf(OpKind kind) { return FactsOf(kind).choices; }

bool UsesExpertWeights(OpKind kind) { return FactsOf(kind).uses_weights; }

bool IsOfTokens(const OperandSignature& operand) {
  static const std::vector<std::string> tokens = {"t", "B"};
  return !operand.leading && !operand.dims.empty() && operand.dims.front().factors == tokens;
}

}  // namespace planwright
