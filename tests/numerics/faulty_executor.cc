// The executor with one deliberate fault and without the proof of its plan, so that the numerics tests can show that they would notice.
//   PLANWRIGHT_FAULT=shifted_bridge_rows | swapped_bridge_lanes | doubled_gradient | missing_tp_sum | misplaced_expert_rows
#include <ATen/ops/roll.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "executor/op_table.h"
#include "executor/rank_main.h"

namespace planwright::executor {
namespace {

std::string Fault() {
  const char* fault = std::getenv("PLANWRIGHT_FAULT");
  return fault ? fault : "";
}

// Rows that belong to the image before: what a bridge that delivers another sample's rows looks like.
Tensors MergeShiftedRows(const ComputeContext& context) {
  Tensors inputs = context.inputs;
  inputs[1] = at::roll(inputs[1], 1, 0);
  return ops::RunMergeImages({context.instruction, context.call, inputs, context.parameters, context.gradients});
}

// Only the last layer's: one of many.
Tensors AddGradientTwice(const ComputeContext& context) {
  if (context.instruction.gradients.front() == "o_proj") ops::RunLinearWeightGrad(context);
  return ops::RunLinearWeightGrad(context);
}

Tensors MisplaceExpertRows(const ComputeContext& context) {
  Tensors outputs = ops::RunExperts(context);
  if (outputs[0].size(0) > 1) outputs[0].narrow(0, 0, 2).copy_(outputs[0].narrow(0, 0, 2).flip(0).clone());
  return outputs;
}

ComputeHandler FaultyHandlerOf(OpKind kind) {
  const std::string fault = Fault();
  if (fault == "shifted_bridge_rows" && kind == OpKind::kMergeImages) return MergeShiftedRows;
  if (fault == "doubled_gradient" && kind == OpKind::kLinearWeightGrad) return AddGradientTwice;
  if (fault == "misplaced_expert_rows" && kind == OpKind::kExperts) return MisplaceExpertRows;
  return ComputeHandlerOf(kind);
}

absl::Status DamagePlan(Plan& plan) {
  const std::string fault = Fault();
  if (fault == "swapped_bridge_lanes") {
    for (Bridge& bridge : plan.bridges) {
      std::swap(bridge.forward.at(0).to_rank, bridge.forward.at(1).to_rank);
      std::swap(bridge.backward.at(0).from_rank, bridge.backward.at(1).from_rank);
    }
  }
  if (fault == "missing_tp_sum") {
    for (Role& role : plan.roles) {
      std::erase_if(role.step, [](const Instruction& op) {
        return op.kind == OpKind::kAllReduce && op.inputs.front().find("gradient_shards") != std::string::npos;
      });
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  return RankMain(argc, argv, {.compute = FaultyHandlerOf, .prepare = DamagePlan});
}
