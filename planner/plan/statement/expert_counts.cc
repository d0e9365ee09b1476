#include "planner/plan/statement/expert_counts.h"

#include <algorithm>

namespace planwright {

bool CountsExperts(const ModelStatement& statement, char letter) {
  const auto piece = statement.layers.find(letter);
  return piece != statement.layers.end() &&
         std::any_of(piece->second.computes.begin(), piece->second.computes.end(),
                     [](const StatedCompute& compute) { return compute.kind == OpKind::kAccumulateCounts; });
}

bool CountsExperts(const ModelStatement& statement) {
  return std::any_of(statement.layer_kinds.begin(), statement.layer_kinds.end(),
                     [&](const StatedLayer& kind) { return CountsExperts(statement, kind.letter); });
}

bool StepsExpertBias(const Module& module, int stage) {
  const ModelStatement* statement = StatementOf(module.kind);  // null: V11
  return statement != nullptr && module.trains_backbone &&
         std::any_of(module.layers.begin(), module.layers.end(), [&](const LayerSummary& layer) {
           return layer.expert_row >= 0 && layer.stage == stage && CountsExperts(*statement, layer.kind);
         });
}

}  // namespace planwright
