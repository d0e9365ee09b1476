#include "planner/plan/link/linked_block.h"

#include <algorithm>

#include "planner/plan/link/joins.h"
#include "planner/plan/op_table.h"

namespace planwright {

namespace {

// Of neighbours in a block.
bool CanJoin(const LinkedInstruction& first, const LinkedInstruction& second) {
  const Join join = JoinOf(*first.source, *second.source);
  if (join == Join::kNone || first.stream != second.stream) return false;
  if (first.outputs.empty() || first.outputs.front() < 0) return false;
  const int value = first.outputs.front();
  const auto count = [value](std::span<const int> values) { return std::count(values.begin(), values.end(), value); };
  const bool dies = count(second.frees) == 1;
  return count(second.inputs) == 1 && (dies || join == Join::kKeeps) && count(first.frees) == 0;
}

}  // namespace

// Links one list. The numbers of all instructions go into one vector, which grows; so the spans of instructions are set
// at the end, when the vector no longer moves.
class BlockLinker {
 public:
  BlockLinker(LinkedBlocks& blocks, const Block* block) : blocks_(blocks) {
    made_.block = block;
    if (!block) return;
    made_.module = blocks.modules_.Find(block->module);
    for (const Output& input : block->inputs) made_.inputs.push_back(Define(input, made_.left));
    for (const Output& take : block->takes)
      made_.takes.push_back({blocks.saved_names_.Intern(take.name), Define(take, made_.left)});
  }

  LinkedBlock Link(const std::vector<Instruction>& list, int first) {
    made_.body.reserve(list.size());
    ends_.reserve(list.size());
    for (const Instruction& instruction : list) Add(instruction, first + static_cast<int>(made_.body.size()));
    if (made_.block) {
      for (const std::string& output : made_.block->outputs) made_.outputs.push_back(Find(output));
      for (const std::string& name : made_.block->saved)
        made_.saved.push_back({blocks_.saved_names_.Intern(name), Find(name)});
    }
    for (const auto& [name, value] : named_) made_.left.push_back(value);
    std::sort(made_.left.begin(), made_.left.end());
    SetSpans();
    return std::move(made_);
  }

 private:
  // Where the spans of an instruction end in numbers_ and parts_. Each begins where the one before ends.
  struct SpanEnds {
    size_t inputs = 0, outputs = 0, frees = 0, parameters = 0, gradients = 0, parts = 0;
  };

  // Gives a name to a new value. A value that had the name before loses it and goes to `lost`.
  int Define(const Output& output, std::vector<int>& lost) {
    const int value = static_cast<int>(made_.types.size());
    made_.types.push_back(&output.type);
    const auto [it, is_new] = named_.try_emplace(output.name, value);
    if (!is_new) {
      lost.push_back(it->second);
      it->second = value;
    }
    return value;
  }

  int Find(std::string_view name) const {
    const auto it = named_.find(name);
    return it == named_.end() ? kNoOperand : it->second;
  }
  int Operand(const std::string& name) {
    return IsStateName(name) ? OperandOfState(blocks_.states_.Intern(name)) : Find(name);
  }

  int Slot(std::string_view name) {
    const auto it = std::find(made_.slots.begin(), made_.slots.end(), name);
    if (it != made_.slots.end()) return static_cast<int>(it - made_.slots.begin());
    made_.slots.push_back(name);
    return static_cast<int>(made_.slots.size()) - 1;
  }

  void Add(const Instruction& instruction, int number) {
    LinkedInstruction& linked = made_.body.emplace_back();
    linked.source = &instruction;
    linked.op_class = OpClassOf(instruction.kind);
    linked.number = number;
    linked.index = static_cast<int>(made_.body.size()) - 1;
    if (!instruction.group.empty()) linked.group = blocks_.groups_.Find(instruction.group);
    linked.stream = blocks_.streams_.Intern(instruction.stream);
    if (const std::string* module = instruction.FindText("module")) linked.module = blocks_.modules_.Find(*module);
    if (instruction.kind == OpKind::kCall) {
      linked.called = blocks_.block_names_.Find(instruction.block);
      if (!instruction.frame.empty()) linked.frame = blocks_.frames_.Intern(instruction.frame);
    }
    // In the order in which the instruction acts: it reads its inputs and what it sends, then makes its outputs. So an
    // output may have the name of an input.
    std::vector<int>& numbers = made_.numbers_;
    SpanEnds& ends = ends_.emplace_back();
    for (const std::string& name : instruction.inputs) numbers.push_back(Operand(name));
    ends.inputs = numbers.size();
    for (const ExchangePart& part : instruction.parts) {
      LinkedExchangePart& made = made_.parts_.emplace_back();
      if (!part.sizes.empty()) made.sizes = Operand(part.sizes);
      if (part.send) made.value = Operand(part.value);
      if (!part.bridge.empty()) made.bridge = blocks_.bridges_.Find(part.bridge);
      if (!part.group.empty()) made.group = blocks_.groups_.Find(part.group);
    }
    ends.parts = made_.parts_.size();
    lost_.clear();
    for (const Output& output : instruction.outputs) {
      numbers.push_back(IsStateName(output.name) ? OperandOfState(blocks_.states_.Intern(output.name))
                                                 : Define(output, lost_));
    }
    ends.outputs = numbers.size();
    for (size_t i = 0; i < instruction.parts.size(); ++i) {  // what is received is an output, which has a number now
      const ExchangePart& part = instruction.parts[i];
      if (!part.send) made_.parts_[ends.parts - instruction.parts.size() + i].value = Find(part.value);
    }
    numbers.insert(numbers.end(), lost_.begin(), lost_.end());
    for (const std::string& name : instruction.frees) {
      const auto it = named_.find(name);
      if (it == named_.end()) continue;
      numbers.push_back(it->second);
      named_.erase(it);
    }
    ends.frees = numbers.size();
    for (const std::string& slot : instruction.parameters) numbers.push_back(Slot(slot));
    ends.parameters = numbers.size();
    for (const std::string& slot : instruction.gradients) numbers.push_back(Slot(slot));
    ends.gradients = numbers.size();
  }

  void SetSpans() {
    size_t at = 0, part = 0;
    const auto next = [&](size_t end) {
      const std::span<const int> span(made_.numbers_.data() + at, end - at);
      at = end;
      return span;
    };
    for (size_t i = 0; i < ends_.size(); ++i) {
      LinkedInstruction& linked = made_.body[i];
      linked.inputs = next(ends_[i].inputs);
      linked.outputs = next(ends_[i].outputs);
      linked.frees = next(ends_[i].frees);
      linked.parameters = next(ends_[i].parameters);
      linked.gradients = next(ends_[i].gradients);
      linked.parts = {made_.parts_.data() + part, ends_[i].parts - part};
      part = ends_[i].parts;
      const std::optional<size_t> input = InfoOf(linked.source->kind).overwrites;
      const bool makes = !linked.outputs.empty() && linked.outputs[0] >= 0;
      if (input && makes && *input < linked.inputs.size() && linked.inputs[*input] >= 0)
        linked.overwrites = static_cast<int>(*input);
      const bool bound = std::find(linked.inputs.begin(), linked.inputs.end(), kNoOperand) == linked.inputs.end() &&
                         !LacksOperand(linked);
      if (!bound && linked.op_class != OpClass::kControl && !made_.unbound) made_.unbound = &linked;
      LinkedInstruction* last = i > 0 ? &made_.body[i - 1] : nullptr;
      if (last != nullptr && made_.block != nullptr && !last->joins_last && CanJoin(*last, linked))
        last->joins_next = linked.joins_last = true;
    }
  }

  static bool LacksOperand(const LinkedInstruction& linked) {
    for (size_t i = 0; i < linked.parts.size(); ++i) {
      const bool sized = !linked.source->parts[i].sizes.empty();
      if (linked.parts[i].value == kNoOperand || (sized && linked.parts[i].sizes == kNoOperand)) return true;
    }
    return false;
  }

  LinkedBlocks& blocks_;
  LinkedBlock made_;
  std::unordered_map<std::string_view, int> named_;  // the value that each name stands for, so far
  std::vector<SpanEnds> ends_;                       // by instruction
  std::vector<int> lost_;                            // values that lost their name to an output of the instruction
};

int LinkedBlocks::NameTable::Intern(std::string_view name) {
  const auto [it, is_new] = numbers.try_emplace(name, static_cast<int>(names.size()));
  if (is_new) names.push_back(name);
  return it->second;
}

int LinkedBlocks::NameTable::Find(std::string_view name) const {
  const auto it = numbers.find(name);
  return it == numbers.end() ? -1 : it->second;
}

LinkedBlocks::LinkedBlocks(const Plan& plan) : plan_(plan), slots_of_(plan.modules.size()) {
  // The first of two parts with one name is found: Plan::FindModule and its siblings find it too.
  const auto number = [](const auto& list, NameTable& table) {
    for (size_t i = 0; i < list.size(); ++i) table.numbers.try_emplace(list[i].name, static_cast<int>(i));
  };
  number(plan.blocks, block_names_);
  number(plan.modules, modules_);
  number(plan.groups, groups_);
  number(plan.bridges, bridges_);
  streams_.Intern("");  // the main stream is 0
  for (size_t m = 0; m < plan.modules.size(); ++m) {
    const std::vector<Storage>& storages = plan.modules[m].storages;
    for (size_t i = 0; i < storages.size(); ++i) {
      const auto fills = [&](const std::string& name, const std::string& slot) {
        const size_t frame = frames_.Intern(name);
        if (frame >= slots_of_[m].size()) slots_of_[m].resize(frame + 1);
        slots_of_[m][frame].push_back({slot, static_cast<int>(i)});
      };
      fills(storages[i].frame, storages[i].slot);
      for (const SharedSlot& shared : storages[i].shared) fills(shared.frame, shared.slot);
    }
  }
  blocks_.reserve(plan.blocks.size());
  for (const Block& block : plan.blocks) {
    blocks_.push_back(BlockLinker(*this, &block).Link(block.body, instructions_));
    instructions_ += static_cast<int>(block.body.size());
  }
  // Only now: a call may stand in a block before the one that it calls, whose slots must be known.
  for (LinkedBlock& block : blocks_) {
    for (LinkedInstruction& call : block.body) {
      if (call.called >= 0 && call.frame >= 0) call.slots = SlotsOf(call.called, call.frame);
    }
  }
}

LinkedBlock LinkedBlocks::Link(const std::vector<Instruction>& list, int first) {
  LinkedBlock linked = BlockLinker(*this, nullptr).Link(list, first);
  for (LinkedInstruction& call : linked.body) {
    if (call.called >= 0 && call.frame >= 0) call.slots = SlotsOf(call.called, call.frame);
  }
  return linked;
}

int LinkedBlocks::SlotsOf(int index, int frame) {
  const LinkedBlock& block = blocks_[index];
  // The same block and frame meet in every microbatch: looked up once.
  const auto [it, is_new] =
      slots_.try_emplace((int64_t{index} << 32) | static_cast<uint32_t>(frame), static_cast<int>(storages_.size()));
  if (!is_new) return it->second;
  for (std::string_view slot : block.slots) {
    int found = -1;
    if (block.module >= 0 && frame >= 0 && frame < static_cast<int>(slots_of_[block.module].size())) {
      for (const FrameSlot& known : slots_of_[block.module][frame]) {
        if (known.slot == slot) found = known.storage;
      }
    }
    storages_.push_back(found);
  }
  return it->second;
}

}  // namespace planwright
