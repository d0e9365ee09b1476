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

// Twice as many heads of half the size: a rank's queries meet halves of heads that belong to others.
void ReadOtherKeyHeads(Plan& plan) {
  for (const char* block : {"language.attention.forward", "language.attention.backward"}) {
    for (Instruction& op : BlockNamed(plan, block).body) {
      if (op.attributes.contains("kv_heads")) {
        op.attributes["kv_heads"] = 2 * op.integer("kv_heads");
        op.attributes["q_heads"] = 2 * op.integer("q_heads");
        op.attributes["head_dim"] = op.integer("head_dim") / 2;
      }
    }
  }
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
      {"other_key_heads", keys, ReadOtherKeyHeads},
  };
}

}  // namespace planwright::testing
