// What one role does, as one flat list: its lists (kRoleLists) one after the other, with the body of each called block
// in place of the call. Names that stand for the same value (in a caller, in a block, in a frame) have become the same
// number. A number is given out again when its value is dead, so there are as many numbers as values are alive at once.
// The executor runs this list, and `estimate` counts memory on it.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/plan/link/linked_block.h"

namespace planwright {

// An instruction in one call of its block.
struct LinkedEntry {
  const LinkedInstruction* instruction = nullptr;
  uint32_t call = 0;   // index in LinkedProgram::calls
  uint32_t after = 0;  // where its events end (LinkedProgram::after); they begin where those of the entry before end
};

// One call of a block, or the run of one of the role's own lists.
struct LinkedCall {
  const LinkedBlock* block = nullptr;
  int parent = -1;           // index in LinkedProgram::calls of the call in which it is made; -1: it is a role's list
  int index = 0;             // index of the call instruction in the list of the parent
  int frame = -1;            // index of LinkedBlocks::frame; -1: none
  int microbatch = -1;       // -1: none
  int slots = -1;            // where its storages start (LinkedBlocks::storage); -1: it has none
  uint32_t first_value = 0;  // where the numbers of its values start (LinkedProgram::ValuesOf)
  uint32_t first = 0, end = 0;  // its entries, with those of the calls inside it
};

class LinkedProgram {
 public:
  // Entries [first, end).
  struct Range {
    size_t first = 0, end = 0;
  };

  // Keeps references: blocks and role must outlive it. In a plan that has not passed the rules of calls and values
  // (V4), some names may stand for nothing; problem() then names the first.
  LinkedProgram(LinkedBlocks& blocks, const Role& role);
  LinkedProgram(const LinkedProgram&) = delete;

  const LinkedBlocks& blocks() const { return blocks_; }
  const Role& role() const { return role_; }
  const std::vector<LinkedEntry>& entries() const { return entries_; }
  const std::vector<LinkedCall>& calls() const { return calls_; }
  Range setup() const { return ranges_[0]; }
  Range resume() const { return ranges_[1]; }
  Range step() const { return ranges_[kStep]; }
  Range evaluate() const { return ranges_[kEvaluate]; }
  Range score() const { return ranges_[4]; }
  Range save() const { return ranges_[5]; }
  Range teardown() const { return ranges_[6]; }
  // The role's own lists, calls not opened.
  const LinkedBlock& step_list() const { return *lists_[kStep]; }
  const LinkedBlock& evaluate_list() const { return *lists_[kEvaluate]; }
  // In all blocks and in the role's lists: one more than the last LinkedInstruction::number.
  int instructions() const { return instructions_; }
  int values() const { return values_; }  // numbers of values: the most that are alive at once

  // The value that an operand (0 and up) of an entry, or of an instruction of a call, stands for; -1: none.
  int ValueOf(uint32_t call, int operand) const { return bindings_[calls_[call].first_value + operand]; }
  int ValueOf(const LinkedEntry& entry, int operand) const { return ValueOf(entry.call, operand); }
  const int* ValuesOf(uint32_t call) const { return bindings_.data() + calls_[call].first_value; }  // by operand

  // What happens to values after an entry, in order. An event 0 and up: that value dies. A negative event, ~value: a
  // frame keeps the value from here on.
  std::span<const int> after(size_t entry) const {
    const uint32_t first = entry == 0 ? 0 : entries_[entry - 1].after;
    return {after_.data() + first, entries_[entry].after - first};
  }

  // The value whose memory the first output of an entry takes over (OpInfo::overwrites): an input that dies with the
  // entry, so that nothing reads it later. -1: none, the output has memory of its own.
  int Overwritten(size_t entry) const;

  // Whether what dies with an entry is held until the next one is done, as ranks do both as one (joins.def) and the
  // plan makes the value between them. Where that value passes, it needs no memory, and what is held takes its place.
  bool HoldsForNext(size_t entry) const;

  // Appends the calls around an instruction, from the outside in: " > m.s0 m.s0.backward > m.layers.1
  // m.layer.backward". Nothing for a role's list.
  void AppendPath(uint32_t call, std::string& path) const;
  int OriginOf(const LinkedEntry& entry) const;  // index in Plan::origins, -1: none

  // What does not link; empty: nothing, as in every verified plan.
  const std::string& problem() const { return problem_; }

 private:
  friend class ProgramLinker;

  const LinkedBlocks& blocks_;
  const Role& role_;
  static constexpr size_t kStep = 2, kEvaluate = 3;
  // In the order of kRoleLists.
  std::unique_ptr<LinkedBlock> lists_[std::size(kRoleLists)];
  Range ranges_[std::size(kRoleLists)];
  std::vector<LinkedEntry> entries_;
  std::vector<LinkedCall> calls_;
  std::vector<int> bindings_, after_;
  int values_ = 0, instructions_ = 0;
  std::string problem_;
};

}  // namespace planwright
