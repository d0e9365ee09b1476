// Faults of the encoder's context parallelism. On the layout some images lie on both ranks.
#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

Instruction& MakerOf(Plan& plan, const std::string& block_name, const std::string& value) {
  for (Block& block : plan.blocks) {
    for (Instruction& op : block.body) {
      if (block.name == block_name && !op.outputs.empty() && op.outputs[0].name == value) return op;
    }
  }
  Bug("nothing makes " + value + " in " + block_name);
}

// Keys keep the term of their own part's queries.
void KeepOwnKeyTerms(Plan& plan) {
  Instruction& op = MakerOf(plan, "radio_encoder.layer.backward", "dkv");
  op.kind = OpKind::kSliceRows;
  op.group.clear();
  op.attributes = {{"axis", std::string("cp")}};
}

// The gradient of the projection is k | v | q.
void JoinInTheOtherOrder(Plan& plan) {
  Instruction& op = MakerOf(plan, "radio_encoder.layer.backward", "dqkv");
  if (op.kind != OpKind::kConcat) Bug("dqkv is not joined");
  std::swap(op.inputs.at(0), op.inputs.at(1));
}

}  // namespace

std::vector<PlanFault> EncoderContextParallelFaults() {
  const Layout layout = {"encoder_cp2",
                         Join(EncoderOn(2, 1), Parallel("radio_encoder", {{"cp", 2}}), LanguageOn(2, 1, 1, 1))};
  return {{"key_gradients_not_summed_over_cp", layout, KeepOwnKeyTerms},
          {"query_and_key_gradients_swapped", layout, JoinInTheOtherOrder}};
}

}  // namespace planwright::testing
