// V6 of statistics: what is added to a sum of the step is added once over each axis along which it is the same, and on
// every rank along an axis over which ranks hold parts of it. The step's sums are reduced over the whole world at its
// end. Blocks add losses, routing fingerprints and counts of expert choices; a role's own list adds loss tokens, and
// losses by source.
//
// Not here: how often a microbatch adds to a sum (V5, verify_layers.cc and verify_microbatches.cc), and the reduction
// at the end of the step (verify_updates.cc).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// The axes of a lane. Along the others ranks have other samples, other layers or other experts, and all of them count.
constexpr Axis kLaneAxes[] = {Axis::kTp, Axis::kCp};

// What is wrong with the attribute once_over of an instruction that adds a value of a module to a sum. Along the axes
// `in_parts` each rank has a part of the value, or a term of it; along the other axes of the lane the value is the
// same.
std::vector<string> OnceOverProblems(const Instruction& op, const Module& module, const std::set<Axis>& in_parts) {
  std::vector<string> problems;
  const string& value = op.inputs.front();
  const string* text = op.FindText("once_over");
  std::set<string> once;
  if (text) once = absl::StrSplit(*text, ',', absl::SkipEmpty());
  string wanted;
  for (Axis axis : kLaneAxes) {
    const string name(AxisName(axis));
    const bool named = once.erase(name) > 0;
    if (module.grid.size(axis) == 1) continue;
    if (!in_parts.contains(axis)) absl::StrAppend(&wanted, wanted.empty() ? "" : ",", name);
    if (in_parts.contains(axis) && named)
      problems.push_back(absl::StrCat("adds ", value, " once over ", name, ", where every rank has a part of it"));
    if (!in_parts.contains(axis) && !named)
      problems.push_back(absl::StrCat("adds ", value, " on every rank along ", name, ", where it is the same"));
  }
  for (const string& axis : once)
    problems.push_back(absl::StrCat("adds ", value, " once over ", axis, ", along which ranks have other values"));
  // There is one way to write the axes. accumulate_counts has no attribute: its counts are of each rank's own tokens.
  if (op.kind != OpKind::kAccumulateCounts && (text ? wanted.empty() || *text != wanted : !wanted.empty())) {
    problems.push_back(absl::StrCat("adds ", value, " once over [", text ? *text : "", "], not over [", wanted, "]"));
  }
  return problems;
}

// Layouts say over which axes a value inside a block is a partial sum.
void CheckBlock(const PlanIndex& index, const Block& block, std::vector<Violation>& violations) {
  const Module* module = index.module(block.module);
  if (!module) return;  // VerifyValues
  std::map<string, const ValueType*> types;
  for (const auto* list : {&block.inputs, &block.takes}) {
    for (const Output& value : *list) types[value.name] = &value.type;
  }
  for (const Instruction& op : block.body) {
    for (const Output& output : op.outputs) types[output.name] = &output.type;
    if (op.kind != OpKind::kAccumulate && op.kind != OpKind::kAccumulateCounts) continue;
    const ValueType* type = op.inputs.empty() ? nullptr : types[op.inputs.front()];
    if (!type) continue;
    std::set<Axis> in_parts;
    for (const auto& [axis, held] : type->layout) {
      if (held.state == AxisLayout::State::kPartial) in_parts.insert(axis);
    }
    for (const string& problem : OnceOverProblems(op, *module, in_parts)) {
      violations.push_back(
          {"V6", absl::StrCat("block ", block.name, " ", problem), index.OriginOf(op.origin, block.origin, module)});
    }
  }
}

// Every rank of a lane reads the same tokens, so loss tokens count once over tp and cp
// (docs/model/loss.md#normalization).
void CheckLossTokens(const PlanIndex& index, const Role& role, std::vector<Violation>& violations) {
  std::map<string, string> loss_tokens;  // by value: the module that read it
  for (const Instruction& op : role.step) {
    const string* name = op.FindText("module");
    if (op.kind == OpKind::kReadTokens && name && op.outputs.size() > 3) loss_tokens[op.outputs[3].name] = *name;
    if (op.kind != OpKind::kAccumulate || op.inputs.empty() || !name) continue;
    const auto read = loss_tokens.find(op.inputs.front());
    const Module* module = index.module(*name);
    if (!module || read == loss_tokens.end() || read->second != *name) continue;  // VerifyMicrobatches
    for (const string& problem : OnceOverProblems(op, *module, {})) {
      violations.push_back(
          {"V6", absl::StrCat("role ", role.name, " ", problem), index.OriginOf(op.origin, role.origin, nullptr)});
    }
  }
}

// Losses of tokens are in parts over cp, as the layout of the stage's output says. Counts of loss tokens, as the ranks
// of a lane read them, are the same on all of them (docs/training/evaluation.md#sums).
void CheckBySource(const PlanIndex& index, const Role& role, const SampleList& list,
                   std::vector<Violation>& violations) {
  std::map<string, const ValueType*> types;
  for (const Instruction& op : list.Of(role)) {
    for (const Output& output : op.outputs) types[output.name] = &output.type;
    const string* name = op.FindText("module");
    const Module* module = name ? index.module(*name) : nullptr;
    if (op.kind != OpKind::kAccumulateRows || op.inputs.empty() || !module) continue;  // VerifyMicrobatches
    const auto type = types.find(op.inputs.front());
    if (type == types.end()) continue;  // V4
    std::set<Axis> in_parts;
    for (const auto& [axis, held] : type->second->layout) in_parts.insert(axis);
    for (const string& problem : OnceOverProblems(op, *module, in_parts)) {
      violations.push_back(
          {"V6", absl::StrCat("role ", role.name, " ", problem), index.OriginOf(op.origin, role.origin, nullptr)});
    }
  }
}

}  // namespace

std::vector<Violation> VerifyCountedOnce(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Block& block : index.plan().blocks) CheckBlock(index, block, violations);
  for (const Role& role : index.plan().roles) {
    CheckLossTokens(index, role, violations);
    for (const SampleList& list : SampleListsOf(index.plan())) CheckBySource(index, role, list, violations);
  }
  return violations;
}

}  // namespace planwright
