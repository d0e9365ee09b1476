// V6 of statistics: what a block adds to a sum of the step is added once over each axis along which it is the same,
// and on every rank along an axis over which ranks hold parts of it. The step's sums are then reduced over the whole
// world.
//
// Not here: how often a microbatch adds to a sum (V5, verify_layers.cc), loss tokens, which programs add outside
// blocks (verify_microbatches.cc), and the reduction itself (V7, verify_updates.cc).

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// Axes along which an accumulated value is the same everywhere must be those over which it is added once.
void CheckOnceOver(const PlanIndex& index, const Block& block, std::vector<Violation>& violations) {
  const Module* module = index.module(block.module);
  if (!module) return;
  std::map<string, const ValueType*> types;
  const auto fail = [&](const Instruction& op, string message) {
    violations.push_back(
        {"V6", absl::StrCat("block ", block.name, " ", message), index.OriginOf(op.origin, block.origin, module)});
  };
  for (const Output& input : block.inputs) types[input.name] = &input.type;
  for (const Output& take : block.takes) types[take.name] = &take.type;
  for (const Instruction& op : block.body) {
    for (const Output& output : op.outputs) types[output.name] = &output.type;
    if (op.kind != OpKind::kAccumulate && op.kind != OpKind::kAccumulateCounts) continue;
    const ValueType* type = op.inputs.empty() ? nullptr : types[op.inputs.front()];
    if (!type) continue;
    std::set<string> once;
    if (const string* axes = op.FindText("once_over")) once = absl::StrSplit(*axes, ',', absl::SkipEmpty());
    string wanted;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      const string name(AxisName(axis));
      if (module->grid.size(axis) == 1) {
        once.erase(name);
        continue;
      }
      auto held = type->layout.find(axis);
      const bool partial = held != type->layout.end() && held->second.state == AxisLayout::State::kPartial;
      const bool named = once.erase(name) > 0;
      if (!partial) absl::StrAppend(&wanted, wanted.empty() ? "" : ",", name);
      if (partial && named)
        fail(op, absl::StrCat("adds ", op.inputs[0], " once over ", name, ", where every rank has a part of it"));
      if (!partial && !named)
        fail(op, absl::StrCat("adds ", op.inputs[0], " on every rank along ", name, ", where it is the same"));
    }
    for (const string& axis : once)
      fail(op, absl::StrCat("adds ", op.inputs[0], " once over ", axis, ", along which lanes differ"));
    const string* text = op.FindText("once_over");
    if (op.kind == OpKind::kAccumulate && (text ? wanted.empty() || *text != wanted : !wanted.empty())) {
      fail(op, absl::StrCat("adds ", op.inputs[0], " once over other axes than ", wanted));
    }
  }
}

}  // namespace

std::vector<Violation> VerifyCountedOnce(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Block& block : index.plan().blocks) CheckOnceOver(index, block, violations);
  return violations;
}

}  // namespace planwright
