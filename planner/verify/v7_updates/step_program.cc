#include "planner/verify/v7_updates/step_program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;

const Places kNowhere;

bool HasCollectives(const Block& block) { return std::any_of(block.body.begin(), block.body.end(), MovesState); }

// The instructions of a step. A call is replaced by the body of its block if the block has collectives on buckets, as
// with gradients.overlap_reduce, where a stage's last backward reduces each bucket as soon as its gradients are
// complete.
std::vector<const Instruction*> Expanded(const PlanIndex& index, const Role& role) {
  std::vector<const Instruction*> program;
  for (const Instruction& op : role.step) {
    const Block* block = op.kind == OpKind::kCall ? index.block(op.block) : nullptr;
    if (!block || !HasCollectives(*block)) {
      program.push_back(&op);
      continue;
    }
    for (const Instruction& inner : block->body) program.push_back(&inner);
  }
  return program;
}

}  // namespace

string Subject(const Instruction& op) { return op.inputs.empty() ? "nothing" : op.inputs.front(); }

bool MovesState(const Instruction& op) {
  return OpClassOf(op.kind) == OpClass::kCommunication && !op.inputs.empty() && IsStateName(op.inputs.front());
}

StepProgram::StepProgram(const PlanIndex& index, const Role& role) : program_(Expanded(index, role)) {
  CollectPlaces(index);
}

void StepProgram::CollectPlaces(const PlanIndex& index) {
  for (int i = 0; i < static_cast<int>(program_.size()); ++i) {
    const Instruction& op = At(i);
    if (op.kind == OpKind::kCall) {
      if (const Block* block = index.block(op.block)) calls_[block->module].push_back(i);
      continue;
    }
    if (op.kind == OpKind::kAccumulate) accumulates_.push_back(i);
    if (OpClassOf(op.kind) == OpClass::kState && op.kind != OpKind::kAccumulate) {
      const string* module = op.FindText("module");
      const int64_t* bucket = op.FindInteger("bucket");
      state_changes_[{op.kind, module ? *module : "", bucket ? *bucket : -1}].push_back(i);
    }
    if (MovesState(op)) collectives_.push_back(i);
  }
}

string StepProgram::Label(int place) const {
  const Instruction& op = At(place);
  if (op.kind == OpKind::kCall) return absl::StrCat(op.frame, " microbatch ", op.microbatch);
  if (!op.inputs.empty()) return op.inputs.front();
  const string* module = op.FindText("module");
  const int64_t* bucket = op.FindInteger("bucket");
  return module ? absl::StrCat(*module, bucket ? absl::StrCat(" bucket ", *bucket) : "") : "the step";
}

const Places& StepProgram::CallsOf(const string& module) const {
  auto it = calls_.find(module);
  return it == calls_.end() ? kNowhere : it->second;
}

const Places& StepProgram::StateChangesOf(const StateKey& key) const {
  auto it = state_changes_.find(key);
  return it == state_changes_.end() ? kNowhere : it->second;
}

}  // namespace planwright
