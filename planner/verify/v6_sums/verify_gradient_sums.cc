// V6 of gradients over tp and cp: what the ranks of one lane add to a gradient, read from the backward instructions,
// is what the bucket of its storage takes it for. A gradient that is cut is counted on every rank, one that is whole
// is counted once, and the terms of a sum are summed.
//
// Not here: the reduction over lanes (V7, verify_updates.cc), gradients of experts, which are summed by the token
// dispatch (V5, verify_backward.cc), and which ranks a bucket names as its replicas (V7, verify_storage.cc).

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"
#include "planner/verify/v4_values/layout_problem.h"

namespace planwright {
namespace {

using std::string;

// The blocks that add to gradients of parameters. LayoutProblem says what an instruction adds, as it does for V4.
class GradientSums {
 public:
  GradientSums(const PlanIndex& index, std::vector<Violation>& violations) : index_(index), violations_(violations) {}

  void Check(const Block& block) {
    const Module* module = index_.module(block.module);
    if (!module) return;
    std::map<string, const ValueType*> types;
    for (const auto* list : {&block.inputs, &block.takes}) {
      for (const Output& value : *list) types[value.name] = &value.type;
    }
    for (const Instruction& op : block.body) {
      if (!op.gradients.empty()) CheckInstruction(block, *module, op, types);
      for (const Output& output : op.outputs) types[output.name] = &output.type;
    }
  }

 private:
  void CheckInstruction(const Block& block, const Module& module, const Instruction& op,
                        const std::map<string, const ValueType*>& types) {
    TypedInstruction typed{&op, {}, {}, {}};
    for (const string& input : op.inputs) {
      auto it = types.find(input);
      if (it == types.end()) return;
      typed.inputs.push_back(it->second);
    }
    const auto& frames = index_.FramesOf(block);
    if (frames.empty()) return;  // nothing calls the block
    // Slots have one shape and cut in all frames (VerifyValues), so what the instruction adds is the same in each.
    for (const string& slot : op.parameters) typed.parameters.push_back(index_.SlotOf(module, frames.front(), slot));
    for (const string& slot : op.gradients) typed.gradients.push_back(index_.SlotOf(module, frames.front(), slot));
    std::vector<Held> over_tp(op.gradients.size()), over_cp(op.gradients.size());
    if (!FindAdded(typed, module, Axis::kTp, over_tp) || !FindAdded(typed, module, Axis::kCp, over_cp)) return;
    for (std::string_view frame : frames) {
      for (size_t i = 0; i < op.gradients.size(); ++i) {
        const Slot slot = index_.SlotOf(module, frame, op.gradients[i]);
        if (slot.storage && slot.trained) Compare(block, module, op, *slot.storage, over_tp[i], over_cp[i]);
      }
    }
  }

  // Sets what the ranks along an axis add to each gradient. False: V4 has reported the instruction.
  static bool FindAdded(const TypedInstruction& typed, const Module& module, Axis axis, std::vector<Held>& added) {
    if (module.grid.size(axis) == 1) return true;
    std::vector<Held> found;
    if (!LayoutProblem(typed, axis, &found).empty() || found.size() != added.size()) return false;
    added = std::move(found);
    return true;
  }

  void Compare(const Block& block, const Module& module, const Instruction& op, const Storage& storage,
               const Held& over_tp, const Held& over_cp) {
    using State = AxisLayout::State;
    if (storage.bucket < 0 || storage.bucket >= static_cast<int>(module.buckets.size())) return;  // VerifyStorage
    const Bucket& bucket = module.buckets[static_cast<size_t>(storage.bucket)];
    if (bucket.view == View::kExpert) return;  // experts get rows of all ranks of the dense view
    const auto fail = [&](string message) {
      violations_.push_back({"V6", absl::StrCat("the gradient of ", storage.frame, ".", storage.slot, " ", message),
                             index_.OriginOf(op.origin, block.origin, &module)});
    };
    // Buckets of the dense view are summed over cp as over dp, so what is the same on all ranks would be counted often.
    if (module.grid.cp > 1 && over_cp.state == State::kReplicated)
      fail("is the same on every rank along cp, but its bucket is summed over cp");
    if (module.grid.tp == 1) return;
    const TpGradient wanted = over_tp.state == State::kSharded   ? TpGradient::kSharded
                              : over_tp.state == State::kPartial ? TpGradient::kPartial
                                                                 : TpGradient::kReplicated;
    if (bucket.tp != wanted) {
      fail(absl::StrCat("is ", string(TpGradientName(wanted)), " over tp, but bucket ", bucket.name, " takes it for ",
                        string(TpGradientName(bucket.tp))));
    }
  }

  const PlanIndex& index_;
  std::vector<Violation>& violations_;
};

}  // namespace

std::vector<Violation> VerifyGradientSums(const PlanIndex& index) {
  std::vector<Violation> violations;
  GradientSums sums(index, violations);
  for (const Block& block : index.plan().blocks) sums.Check(block);
  return violations;
}

}  // namespace planwright
