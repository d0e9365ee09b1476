// Faults of experts that are cut over expert_tp. On the layout all ranks send equally many rows (ep 1), and expert_tp
// has the same ranks as tp.
#include <algorithm>

#include "planner/diagnostics/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

std::vector<Instruction>::iterator MakerOf(Block& block, const std::string& value) {
  for (auto op = block.body.begin(); op != block.body.end(); ++op) {
    for (const Output& output : op->outputs) {
      if (output.name == value) return op;
    }
  }
  Bug("nothing makes " + value);
}

// This rank keeps its own term where it should get a sum over expert_tp.
void KeepOwnTerm(Plan& plan, const std::string& block, const std::string& sum) {
  Instruction& op = *MakerOf(BlockNamed(plan, block), sum);
  if (op.kind != OpKind::kReduceScatterV) Bug(sum + " is not summed");
  op.kind = OpKind::kLocalSlice;
  op.group.clear();
  op.inputs.resize(1);
  op.attributes = {{"dim", int64_t{0}}};
}

// In `block`, `reader` reads `value` with its two halves, one of each member, in the other order.
void SwapMembers(Plan& plan, const std::string& block_name, const std::string& value, OpKind reader) {
  Block& block = BlockNamed(plan, block_name);
  const auto maker = MakerOf(block, value);
  const Output whole = *std::find_if(maker->outputs.begin(), maker->outputs.end(),
                                     [&](const Output& output) { return output.name == value; });
  Output first = whole, second = whole, swapped = whole;
  first.name += "_first", second.name += "_second", swapped.name += "_swapped";
  first.type.dims[0] = second.type.dims[0] = std::get<int64_t>(whole.type.dims[0]) / 2;
  Instruction split, join;
  split.kind = OpKind::kSplit, join.kind = OpKind::kConcat;
  split.attributes = join.attributes = {{"dim", int64_t{0}}};
  split.inputs = {value}, join.inputs = {second.name, first.name};
  split.outputs = {first, second}, join.outputs = {swapped};
  const auto reading =
      std::find_if(block.body.begin(), block.body.end(), [&](const Instruction& op) { return op.kind == reader; });
  std::replace(reading->inputs.begin(), reading->inputs.end(), value, swapped.name);
  block.body.insert(reading, {split, join});
}

}  // namespace

std::vector<PlanFault> ExpertTpFaults() {
  const Layout layout = {"expert_tp2_tp2",
                         Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 1), Parallel("language", {{"expert_tp", 2}}))};
  return {
      {"expert_tp_sum_missing", layout, [](Plan& plan) { KeepOwnTerm(plan, "language.moe.forward", "out_in"); }},
      {"expert_tp_gradient_sum_missing", layout,
       [](Plan& plan) { KeepOwnTerm(plan, "language.moe.backward", "drows_in"); }},
      {"expert_tp_weight_gradient_sum_missing", layout,
       [](Plan& plan) { KeepOwnTerm(plan, "language.moe.backward", "drow_weights_in"); }},
      {"expert_tp_counts_of_the_other_member", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "counts_all", OpKind::kExperts); }},
      {"expert_tp_rows_of_the_other_member", layout,
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "rows_all", OpKind::kExperts); }},
  };
}

}  // namespace planwright::testing
