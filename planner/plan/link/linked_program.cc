#include "planner/plan/link/linked_program.h"

#include <algorithm>

#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/plan/link/joins.h"
#include "planner/plan/op_table.h"

namespace planwright {

// Follows the names of values through calls and frames. A value lives as long as something names it, which is counted
// in names_. The list that made it names it until it frees it or ends. A block that it is handed to does the same. A
// frame names it from the forward that saves it until a block takes it.
class ProgramLinker {
 public:
  ProgramLinker(LinkedBlocks& blocks, LinkedProgram& made) : blocks_(blocks), made_(made) {}

  void Run(const LinkedBlock& list) {
    const uint32_t call = Enter(list);
    Body(call, 0);
    Leave(call);
    // Whatever frames still keep has leaked: the program is refused, and the values are freed so that numbers balance.
    std::vector<std::string> untaken;
    for (const auto& [key, head] : frames_) {
      for (int at = head; at >= 0; at = kept_[at].next) {
        const int frame = static_cast<int>(key >> 32);
        if (made_.problem_.empty()) {
          untaken.push_back(Cat(frame < 0 ? "" : blocks_.frame(frame), " microbatch ", static_cast<int32_t>(key), " ",
                                blocks_.saved_name(kept_[at].name)));
        }
        Unname(kept_[at].value);
      }
    }
    if (!untaken.empty()) {
      std::sort(untaken.begin(), untaken.end());
      std::string names;
      for (const std::string& name : untaken) names += (names.empty() ? "" : ", ") + name;
      Problem("saved but never taken: " + names);
    }
    frames_.clear(), kept_.clear(), spare_kept_.clear();
    EndAfter();
  }

  int values() const { return static_cast<int>(names_.size()); }

 private:
  // One value that a frame keeps for a microbatch. These form a chain, which `frames_` has the head of: a frame keeps
  // few values, and a map for each would cost more than walking them.
  struct Kept {
    int name = -1, value = -1, next = -1;
  };

  // Adds a call of `block`, whose values have no numbers yet.
  uint32_t Enter(const LinkedBlock& block) {
    LinkedCall& call = made_.calls_.emplace_back();
    call.block = &block;
    call.first_value = static_cast<uint32_t>(made_.bindings_.size());
    call.first = static_cast<uint32_t>(made_.entries_.size());
    made_.bindings_.resize(made_.bindings_.size() + block.types.size(), -1);
    return static_cast<uint32_t>(made_.calls_.size()) - 1;
  }

  // Ends a call: the names in it are gone.
  void Leave(uint32_t index) {
    const LinkedCall& call = made_.calls_[index];
    for (int value : call.block->left) Unname(Binding(call.first_value, value));
    EndAfter();
    made_.calls_[index].end = static_cast<uint32_t>(made_.entries_.size());
  }

  // Keeps the first problem.
  void Problem(std::string what) {
    if (made_.problem_.empty()) made_.problem_ = std::move(what);
  }
  void Problem(uint32_t call, const LinkedInstruction& instruction, const char* what) {
    if (!made_.problem_.empty()) return;
    std::string path;
    made_.AppendPath(call, path);
    Problem(Cat(made_.role_.name, path, " ", instruction.index, ": ", OpName(instruction.source->kind), ": ", what));
  }

  int& Binding(uint32_t first, int value) { return made_.bindings_[first + static_cast<uint32_t>(value)]; }

  // A new value with one name. It gets the number of a dead value if there is one.
  int Make() {
    if (spare_.empty()) {
      names_.push_back(1);
      return static_cast<int>(names_.size()) - 1;
    }
    const int value = spare_.back();
    spare_.pop_back();
    names_[value] = 1;
    return value;
  }
  // Makes the name whose number is at `binding` stand for `value` as well.
  void Share(int& binding, int value) {
    binding = value;
    if (value >= 0) ++names_[value];
  }
  // A name no longer stands for the value. When it was the last, the value dies.
  void Unname(int value) {
    if (value < 0 || --names_[value] > 0) return;
    made_.after_.push_back(value);
    spare_.push_back(value);
  }

  // Assigns the events since the last entry to that entry.
  void EndAfter() {
    if (!made_.entries_.empty()) made_.entries_.back().after = static_cast<uint32_t>(made_.after_.size());
  }

  // Appends the entries of a call's block.
  void Body(uint32_t index, int depth) {
    const LinkedBlock& block = *made_.calls_[index].block;
    const uint32_t first = made_.calls_[index].first_value;
    if (block.unbound) Problem(index, *block.unbound, "an operand that nothing defines");
    for (const LinkedInstruction& instruction : block.body) {
      if (instruction.op_class == OpClass::kControl) {
        Call(instruction, index, depth);
      } else {
        for (int operand : instruction.outputs) {
          if (operand >= 0) Binding(first, operand) = Make();
        }
        made_.entries_.push_back({&instruction, index, static_cast<uint32_t>(made_.after_.size())});
      }
      for (int value : instruction.frees) Unname(Binding(first, value));
      EndAfter();
    }
  }

  // Opens a call: its entries go in the place of the call instruction.
  void Call(const LinkedInstruction& instruction, uint32_t caller, int depth) {
    if (instruction.called < 0) return Problem(caller, instruction, "there is no such block");
    // Only a damaged plan gets here: blocks that call themselves, or each other so often that the list has no end.
    if (depth >= kDeepestCalls ||
        made_.entries_.size() + made_.calls_.size() > static_cast<size_t>(kMostInstructions)) {
      return Problem(caller, instruction, "the program has no end");
    }
    const LinkedBlock& block = blocks_.block(instruction.called);
    const uint32_t index = Enter(block);
    SetContext(instruction, caller, made_.calls_[index]);
    const int64_t frame = FrameKey(made_.calls_[index]);
    const uint32_t outer = made_.calls_[caller].first_value, inner = made_.calls_[index].first_value;
    if (!BindInputs(instruction, block, outer, inner))
      Problem(caller, instruction, "the block has other inputs or outputs");
    if (!HasSlots(block, made_.calls_[index])) Problem(caller, instruction, "the frame lacks a slot of the block");
    if (!block.takes.empty() && !Take(frame, block, inner))
      Problem(caller, instruction, "the block takes what the frame does not keep");

    Body(index, depth + 1);  // adds calls, which moves calls_: no reference into it may live across this line

    if (!BindOutputs(instruction, block, outer, inner))
      Problem(caller, instruction, "the block does not make what it hands on");
    if (!block.saved.empty() && !Save(frame, block, inner))
      Problem(caller, instruction, "the block saves what it does not have, or twice");
    Leave(index);
  }

  // Sets where a call comes from. In a block, frame and microbatch may be those of the enclosing call.
  void SetContext(const LinkedInstruction& instruction, uint32_t caller, LinkedCall& call) {
    const LinkedCall& from = made_.calls_[caller];
    call.parent = static_cast<int>(caller);
    call.index = instruction.index;
    call.frame = instruction.frame >= 0 ? instruction.frame : from.frame;
    call.microbatch = instruction.source->microbatch >= 0 ? instruction.source->microbatch : from.microbatch;
    // A call that names its frame has been given its slots already (LinkedBlocks).
    call.slots = instruction.frame >= 0 || call.block->slots.empty() ? instruction.slots
                                                                     : blocks_.SlotsOf(instruction.called, call.frame);
  }

  // The key of frames_: frame and microbatch in one number.
  static int64_t FrameKey(const LinkedCall& call) {
    return (int64_t{call.frame} << 32) | static_cast<uint32_t>(call.microbatch);
  }

  // The names of the block's inputs stand for the caller's values. False: numbers of operands differ, or one has no
  // value.
  bool BindInputs(const LinkedInstruction& instruction, const LinkedBlock& block, uint32_t outer, uint32_t inner) {
    bool fits = block.inputs.size() == instruction.inputs.size() && block.outputs.size() == instruction.outputs.size();
    for (size_t i = 0; i < block.inputs.size() && i < instruction.inputs.size(); ++i) {
      const int value = instruction.inputs[i] >= 0 ? Binding(outer, instruction.inputs[i]) : -1;
      fits = fits && value >= 0;
      Share(Binding(inner, block.inputs[i]), value);
    }
    return fits;
  }

  // The names of the caller's outputs stand for the block's values. False: the block has no value for one.
  bool BindOutputs(const LinkedInstruction& instruction, const LinkedBlock& block, uint32_t outer, uint32_t inner) {
    bool all = true;
    for (size_t i = 0; i < block.outputs.size() && i < instruction.outputs.size(); ++i) {
      if (instruction.outputs[i] < 0) continue;
      const int value = block.outputs[i] < 0 ? -1 : Binding(inner, block.outputs[i]);
      all = all && value >= 0;
      Share(Binding(outer, instruction.outputs[i]), value);
    }
    return all;
  }

  // Whether the frame of a call has every slot that the block uses.
  bool HasSlots(const LinkedBlock& block, const LinkedCall& call) const {
    for (size_t i = 0; i < block.slots.size(); ++i) {
      if (blocks_.storage(call.slots + static_cast<int>(i)) < 0) return false;
    }
    return true;
  }

  // Gives the values that the block takes to it. False: the frame does not keep some of them.
  bool Take(int64_t key, const LinkedBlock& block, uint32_t first) {
    const auto found = frames_.find(key);
    if (found == frames_.end()) return false;
    bool all = true;
    for (const SavedValue& take : block.takes) {
      int* link = &found->second;
      while (*link >= 0 && kept_[*link].name != take.name) link = &kept_[*link].next;
      if (*link < 0) {
        all = false;
        continue;
      }
      // The frame's name for the value becomes the block's, so the count of names stays.
      Binding(first, take.value) = kept_[*link].value;
      spare_kept_.push_back(*link);
      *link = kept_[*link].next;
    }
    if (found->second < 0) frames_.erase(found);
    return all;
  }

  // Keeps the values that the block saves. False: some have no value, or the frame keeps one of that name.
  bool Save(int64_t key, const LinkedBlock& block, uint32_t first) {
    int* head = &frames_.try_emplace(key, -1).first->second;
    bool all = true;
    // From the last to the first, each put at the head: so the chain is in the order of saving. Backward blocks take in
    // the same order, and find each value at the head.
    for (auto saved = block.saved.rbegin(); saved != block.saved.rend(); ++saved) {
      const int value = saved->value < 0 ? -1 : Binding(first, saved->value);
      for (int at = *head; at >= 0 && all; at = kept_[at].next) all = kept_[at].name != saved->name;
      if (value < 0) {
        all = false;
        continue;
      }
      int at = static_cast<int>(kept_.size());
      if (spare_kept_.empty()) {
        kept_.emplace_back();
      } else {
        at = spare_kept_.back();
        spare_kept_.pop_back();
      }
      kept_[at] = {saved->name, value, *head};
      *head = at;
      ++names_[value];
      made_.after_.push_back(~value);
    }
    if (*head < 0) frames_.erase(key);
    return all;
  }

  LinkedBlocks& blocks_;
  LinkedProgram& made_;
  std::vector<int> names_;  // by value: how many names stand for it
  std::vector<int> spare_;  // numbers of dead values, to be given out again
  std::vector<Kept> kept_;
  std::vector<int> spare_kept_;              // unused elements of kept_
  std::unordered_map<int64_t, int> frames_;  // frame and microbatch -> head of the chain in kept_
};

LinkedProgram::LinkedProgram(LinkedBlocks& blocks, const Role& role)
    : blocks_(blocks), role_(role), instructions_(blocks.instructions()) {
  ProgramLinker linker(blocks, *this);
  for (size_t i = 0; i < std::size(kRoleLists); ++i) {
    const std::vector<Instruction>& list = role.*kRoleLists[i].list;
    lists_[i] = std::make_unique<LinkedBlock>(blocks.Link(list, instructions_));
    instructions_ += static_cast<int>(list.size());
    ranges_[i].first = entries_.size();
    linker.Run(*lists_[i]);
    ranges_[i].end = entries_.size();
  }
  values_ = linker.values();
  // Programs may be of millions of entries, and stay while a step is simulated.
  entries_.shrink_to_fit(), calls_.shrink_to_fit(), bindings_.shrink_to_fit(), after_.shrink_to_fit();
}

int LinkedProgram::Overwritten(size_t index) const {
  const LinkedEntry& entry = entries_[index];
  const int input = entry.instruction->overwrites;
  if (input < 0) return -1;
  const std::span<const int> inputs = entry.instruction->inputs;
  const int value = ValueOf(entry, inputs[static_cast<size_t>(input)]);
  // The instruction itself must not read it by another name, after it has begun to write.
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (static_cast<int>(i) != input && inputs[i] >= 0 && ValueOf(entry, inputs[i]) == value) return -1;
  }
  const std::span<const int> events = after(index);
  return std::find(events.begin(), events.end(), value) == events.end() ? -1 : value;
}

bool LinkedProgram::HoldsForNext(size_t entry) const {
  const LinkedInstruction& first = *entries_[entry].instruction;
  return first.joins_next && TakesJoinedForms(blocks_.plan()) &&
         JoinOf(*first.source, *entries_[entry + 1].instruction->source) == Join::kKeeps;
}

void LinkedProgram::AppendPath(uint32_t call, std::string& path) const {
  const LinkedCall& made = calls_[call];
  if (made.parent < 0) return;
  AppendPath(static_cast<uint32_t>(made.parent), path);
  Append(path, " > ", made.frame < 0 ? "" : blocks_.frame(made.frame), " ", made.block->block->name);
}

int LinkedProgram::OriginOf(const LinkedEntry& entry) const {
  if (entry.instruction->source->origin >= 0) return entry.instruction->source->origin;
  for (int call = static_cast<int>(entry.call); calls_[call].parent >= 0; call = calls_[call].parent) {
    if (calls_[call].block->block->origin >= 0) return calls_[call].block->block->origin;
  }
  return role_.origin;
}

}  // namespace planwright
