#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

// The ids behind the vocabulary have logits like others.
void CountPadding(Plan& plan, const std::string& block, OpKind kind) {
  FirstOf(BlockNamed(plan, block), kind)->attributes.erase("vocabulary");
}

// Each rank keeps the gradient of its keys from its own queries only.
void KeepOwnTermOfSharedKeys(Plan& plan) {
  Instruction& op = *MakerOf(BlockNamed(plan, "language.attention.backward"), "dkv");
  op.kind = OpKind::kLocalSlice;
  op.group.clear();
  op.attributes = {{"dim", int64_t{0}}};
}

}  // namespace

std::vector<PlanFault> UndividedFaults() {
  const Layout keys = LayoutNamed(UndividedLayouts(), "shared_keys_tp4"),
               ids = LayoutNamed(UndividedLayouts(), "padded_vocabulary_tp2");
  return {
      {"padding_in_the_loss", ids,
       [](Plan& plan) { CountPadding(plan, "language.head.forward", OpKind::kCrossEntropyParts); }},
      {"padding_in_the_gradient", ids,
       [](Plan& plan) { CountPadding(plan, "language.head.backward", OpKind::kCrossEntropyGrad); }},
      {"own_term_of_shared_keys", keys, KeepOwnTermOfSharedKeys},
  };
}

}  // namespace planwright::testing
