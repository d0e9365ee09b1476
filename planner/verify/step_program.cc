#include "planner/verify/step_program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;

const Places kNowhere;

// Whether a block has collectives of a step, or events between streams, so that its instructions must be looked at one by one.
bool HasInnerOrder(const Block& block) {
  return std::any_of(block.body.begin(), block.body.end(),
                     [](const Instruction& op) { return MovesState(op) || (op.kind == OpKind::kCall && !(op.waits.empty() && op.signals.empty())); });
}

// A step's program, with the calls of such blocks replaced by what is in them.
std::vector<const Instruction*> Expanded(const PlanIndex& index, const Role& role) {
  std::vector<const Instruction*> program;
  for (const Instruction& op : role.step) {
    const Block* block = op.kind == OpKind::kCall ? index.block(op.block) : nullptr;
    if (!block || !HasInnerOrder(*block) || !op.waits.empty() || !op.signals.empty() || !op.stream.empty()) {
      program.push_back(&op);
      continue;
    }
    for (const Instruction& inner : block->body) program.push_back(&inner);
  }
  return program;
}

}  // namespace

string Subject(const Instruction& op) { return op.inputs.empty() ? "nothing" : op.inputs.front(); }

const string* TextOf(const Instruction& op, const char* attribute) {
  auto it = op.attributes.find(attribute);
  return it == op.attributes.end() ? nullptr : std::get_if<string>(&it->second);
}

bool MovesState(const Instruction& op) {
  const bool state = !op.inputs.empty() && !op.inputs.front().empty() && (op.inputs.front()[0] == '%' || op.inputs.front()[0] == '$');
  return OpClassOf(op.kind) == OpClass::kCommunication && state;
}

StepProgram::StepProgram(const PlanIndex& index, const Role& role) : program_(Expanded(index, role)), order_(program_) { Collect(index); }

void StepProgram::Collect(const PlanIndex& index) {
  for (int i = 0; i < static_cast<int>(program_.size()); ++i) {
    const Instruction& op = At(i);
    if (op.kind == OpKind::kCall) {
      if (const Block* block = index.block(op.block)) calls_[block->module].push_back(i);
      continue;
    }
    if (op.kind == OpKind::kAccumulate) accumulates_.push_back(i);
    if (OpClassOf(op.kind) == OpClass::kState && op.kind != OpKind::kAccumulate) {
      const string* module = TextOf(op, "module");
      states_[{op.kind, module ? *module : ""}].push_back(i);
    }
    if (MovesState(op)) collectives_.push_back(i);
  }
}

string StepProgram::Label(int place) const {
  const Instruction& op = At(place);
  if (op.kind == OpKind::kCall) return absl::StrCat(op.frame, " microbatch ", op.microbatch);
  if (!op.inputs.empty()) return op.inputs.front();
  const string* module = TextOf(op, "module");
  return module ? *module : "the step";
}

const Places& StepProgram::CallsOf(const string& module) const {
  auto it = calls_.find(module);
  return it == calls_.end() ? kNowhere : it->second;
}

const Places& StepProgram::StatesOf(OpKind kind, const string& module) const {
  auto it = states_.find({kind, module});
  return it == states_.end() ? kNowhere : it->second;
}

}  // namespace planwright
