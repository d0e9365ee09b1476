#include "executor/program/bound_program.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "executor/program/actions.h"
#include "executor/program/instruction_text.h"

namespace planwright::executor {
namespace {

std::chrono::nanoseconds Nanoseconds(double seconds) {
  constexpr auto kMost = std::chrono::nanoseconds::max();
  return seconds < std::chrono::duration<double>(kMost).count() / 2
             ? std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds))
             : kMost;
}

}  // namespace

BoundProgram::BoundProgram(const LinkedProgram& program, Rank& rank, const Walk& walk, StepReports& reports,
                           EvaluationReports& evaluations)
    : program_(program), first_additions_(program), rank_(rank), handlers_(walk.handlers), reports_(reports),
      evaluations_(evaluations), instructions_(program.instructions()), calls_(program.calls().size()),
      bound_calls_(program.calls().size()) {
  // Texts and contexts are made for all entries now. Operands and actions wait for Bind: setup allocates what they
  // name.
  const Deadlines deadlines(program, walk.deadlines);
  for (const LinkedEntry& entry : program.entries()) {
    BoundInstruction& bound = instructions_[entry.instruction->number];
    if (!bound.text.empty()) continue;  // an instruction of a block has one entry for each call
    bound.text = InstructionText(*entry.instruction->source);
    if (entry.instruction->op_class == OpClass::kCommunication) bound.state = RecorderState::kWaiting;
    if (entry.instruction->op_class == OpClass::kStorage) bound.state = RecorderState::kStoring;
    if (entry.instruction->op_class == OpClass::kData) bound.state = RecorderState::kReading;
    const Deadline& deadline = deadlines.of(*entry.instruction);
    bound.deadline = Nanoseconds(deadline.later), bound.first_deadline = Nanoseconds(deadline.first);
  }
  // The lists of a role of several modules belong to none of them.
  const Module* of_role = rank.role.modules.size() == 1 ? rank.plan.FindModule(rank.role.modules[0]) : nullptr;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const LinkedCall& call = program.calls()[i];
    const bool role_list = call.parent < 0;
    const Module* module = role_list                ? of_role
                           : call.block->module < 0 ? nullptr
                                                    : &rank.plan.modules[call.block->module];
    calls_[i].context = rank.Context(module, call.frame < 0 ? "" : program.blocks().frame(call.frame), call.microbatch);
    calls_[i].origin = role_list                        ? rank.role.origin
                       : call.block->block->origin >= 0 ? call.block->block->origin
                                                        : calls_[call.parent].origin;
  }
}

void BoundProgram::Bind(const LinkedEntry& entry) {
  const LinkedCall& call = program_.calls()[entry.call];
  if (!bound_calls_[entry.call]) {
    if (!call.block->slots.empty()) calls_[entry.call].operands = SlotOperandsOf(call);
    bound_calls_[entry.call] = true;
  }
  const BoundInstruction& bound = instructions_[entry.instruction->number];
  if (!bound.action && bound.compute == nullptr) BindInstruction(entry);
}

void BoundProgram::BindInstruction(const LinkedEntry& entry) {
  const LinkedInstruction& linked = *entry.instruction;
  const LinkedCall& call = program_.calls()[entry.call];
  const Instruction& source = *linked.source;
  BoundInstruction& bound = instructions_[linked.number];
  const Module* module = call.block->module < 0 ? nullptr : &rank_.plan.modules[call.block->module];
  if (linked.module >= 0 || source.microbatch >= 0) {
    const Module* named = linked.module >= 0 ? &rank_.plan.modules[linked.module] : module;
    bound.context = rank_.Context(named, "", source.microbatch);
  }
  switch (linked.op_class) {
    case OpClass::kControl: TORCH_CHECK(false, "instruction 'call' in a linked program, where every call is opened");
    case OpClass::kData:
      bound.action = [this, &source](const ActionArguments& arguments) {
        return handlers_.data(source, arguments.call);
      };
      return;
    case OpClass::kCompute:
      bound.compute = BindCompute(entry, module);
      if (linked.joins_last) BindJoined(entry, module);
      return;
    case OpClass::kCommunication: bound.action = BindCommunication(linked, rank_); return;
    case OpClass::kState:
      bound.action = BindState(linked, module, first_additions_, rank_, handlers_, reports_, evaluations_);
      return;
    case OpClass::kStorage: bound.action = BindStorage(linked, rank_, handlers_); return;
  }
}

ComputeBinding BoundProgram::BindingOf(const LinkedCall& call, const LinkedInstruction& linked, const Module* module,
                                       const SlotOperands* slots) const {
  static const SlotOperands kNone;
  const SlotOperands& operands = slots == nullptr ? kNone : slots[linked.index];
  ComputeBinding binding{*linked.source, module, rank_.device, {}, operands.parameters, operands.gradients};
  for (int operand : linked.inputs) {
    TORCH_CHECK(operand >= 0, OpName(linked.source->kind), " reads what is no value of its list");
    binding.inputs.push_back(call.block->types[static_cast<size_t>(operand)]);
  }
  return binding;
}

ComputeHandler BoundProgram::BindCompute(const LinkedEntry& entry, const Module* module) {
  const LinkedInstruction& linked = *entry.instruction;
  const Instruction& source = *linked.source;
  const LinkedCall& call = program_.calls()[entry.call];
  TORCH_CHECK(call.block->block != nullptr || (source.parameters.empty() && source.gradients.empty()),
              OpName(source.kind), " has parameters or gradients, but is in no block that could have slots");
  const ComputeForm form = handlers_.compute(BindingOf(call, linked, module, calls_[entry.call].operands));
  TORCH_CHECK(form.run != nullptr, "this executor has no handler of ", OpName(source.kind));
  FormCounts& counts = forms_[source.kind];
  ++counts.all;
  if (form.choice == ComputeForm::Choice::kFast) ++counts.fast;
  counts.has_fast |= form.choice != ComputeForm::Choice::kOnly;
  return form.run;
}

// A value that is probed is made, and lives on. What else the first makes exists right behind it only where it runs by
// itself, and there a probe reads it.
void BoundProgram::BindJoined(const LinkedEntry& entry, const Module* module) {
  const LinkedInstruction &second = *entry.instruction, &first = *(&second - 1);
  const LinkedCall& call = program_.calls()[entry.call];
  const std::vector<Probe>& probes = call.block->block->probes;
  const bool probed = std::any_of(probes.begin(), probes.end(), [&](const Probe& probe) {
    const std::vector<Output>& made = first.source->outputs;
    return std::any_of(made.begin(), made.end(), [&](const Output& output) { return output.name == probe.value; });
  });
  BoundInstruction &of_first = instructions_[first.number], &of_second = instructions_[second.number];
  if (!handlers_.joined || probed || of_first.context || of_second.context) return;
  const SlotOperands* slots = calls_[entry.call].operands;
  of_second.joined = handlers_.joined(BindingOf(call, first, module, slots), BindingOf(call, second, module, slots));
  of_first.done_by_next = of_second.joined != nullptr;
  if (of_first.done_by_next) ++joined_;
}

std::string BoundProgram::FormsText() const {
  int all = 0, fast = 0;
  std::string kinds;
  for (const auto& [kind, counts] : forms_) {
    all += counts.all, fast += counts.fast;
    if (!counts.has_fast) continue;
    absl::StrAppend(&kinds, kinds.empty() ? ": " : ", ", std::string(OpName(kind)), " ", counts.fast);
    if (counts.fast < counts.all) absl::StrAppend(&kinds, " of ", counts.all);
  }
  const std::string joined = joined_ == 0 ? "" : absl::StrCat("; ", joined_, " together with the one before them");
  return absl::StrCat(all, " compute instructions, ", fast, " in their fast form", fast == 0 ? "" : kinds, joined);
}

const SlotOperands* BoundProgram::SlotOperandsOf(const LinkedCall& call) {
  // Calls of one block in one frame differ in their microbatch only, and share the list.
  const auto [it, fresh] = operands_.try_emplace(call.slots);
  if (!fresh) return it->second.data();
  const Block& block = *call.block->block;
  const auto module = rank_.modules.find(block.module);
  TORCH_CHECK(module != rank_.modules.end(), "module ", block.module, " is not allocated on this rank");
  const auto slot = [&](int index) -> const SlotTensors& {
    return module->second.storages().at(static_cast<size_t>(program_.blocks().storage(call.slots + index)));
  };
  it->second.resize(call.block->body.size());
  for (const LinkedInstruction& linked : call.block->body) {
    SlotOperands& operands = it->second[linked.index];
    for (int index : linked.parameters) operands.parameters.push_back(slot(index).parameter);
    for (int index : linked.gradients) {
      operands.gradients.push_back(slot(index).gradient);
      TORCH_CHECK(operands.gradients.back().defined(), program_.blocks().frame(call.frame), ".",
                  call.block->slots[index], " is frozen: it has no gradient to add to");
    }
  }
  return it->second.data();
}

}  // namespace planwright::executor
