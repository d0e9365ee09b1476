// What one role does, as one flat list: setup, step and teardown with every call opened. Calls themselves are gone:
// what they bind, take and save has become which values are the same. Values are numbered over the whole list, and a
// number is given out again when its value is dead, so there are as many as are alive at once. The executor runs this
// list; `estimate` counts memory on it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planner/link/linked_block.h"

namespace planwright {

// An instruction of a block, in one of its calls.
struct LinkedEntry {
  const LinkedInstruction* instruction = nullptr;
  uint32_t call = 0;   // index in LinkedProgram::calls
  uint32_t after = 0;  // end of LinkedProgram::after of this entry, which starts at that of the entry before
};

// One call of a block, or a role's own list.
struct LinkedCall {
  const LinkedBlock* block = nullptr;
  int parent = -1;  // the call in which it is made; -1: a role's list
  int place = 0;    // of the call in that one's list
  int frame = -1;   // index of LinkedBlocks::frame; -1: none
  int microbatch = -1;
  int slots = -1;               // where its storages start (LinkedBlocks::storage)
  uint32_t first_value = 0;     // where the numbers of its values start
  uint32_t first = 0, end = 0;  // its entries, with those of the calls that it makes
};

class LinkedProgram {
 public:
  struct Range {
    size_t first = 0, end = 0;  // entries
  };

  // Keeps references: blocks and role must outlive it. A plan that the rules of calls and values (V4) have not passed
  // may link to nothing in places: problem() then says the first.
  LinkedProgram(LinkedBlocks& blocks, const Role& role);
  LinkedProgram(const LinkedProgram&) = delete;

  const LinkedBlocks& blocks() const { return blocks_; }
  const Role& role() const { return role_; }
  const std::vector<LinkedEntry>& entries() const { return entries_; }
  const std::vector<LinkedCall>& calls() const { return calls_; }
  Range setup() const { return ranges_[0]; }
  Range step() const { return ranges_[1]; }
  Range teardown() const { return ranges_[2]; }
  const LinkedBlock& step_list() const { return *lists_[1]; }
  // of all blocks and of the role's lists: one more than the last LinkedInstruction::number
  int instructions() const { return instructions_; }
  int values() const { return values_; }  // alive at once, at most

  // The value that an operand (not negative) of an entry, or of an instruction of a call, stands for; -1: none.
  int ValueOf(uint32_t call, int operand) const { return bindings_[calls_[call].first_value + operand]; }
  int ValueOf(const LinkedEntry& entry, int operand) const { return ValueOf(entry.call, operand); }
  const int* ValuesOf(uint32_t call) const { return bindings_.data() + calls_[call].first_value; }  // by operand

  // What happens behind an entry, in order. Not negative: the value dies. Negative, ~value: a frame keeps it from here
  // on.
  std::span<const int> after(size_t entry) const {
    const uint32_t first = entry == 0 ? 0 : entries_[entry - 1].after;
    return {after_.data() + first, entries_[entry].after - first};
  }

  // " > m.s0 m.s0.backward > m.layers.1 m.layer.backward"; nothing for a role's list.
  void AppendPath(uint32_t call, std::string& path) const;
  int OriginOf(const LinkedEntry& entry) const;  // index in Plan::origins, -1: none

  // Empty: the program can run. A verified plan has none.
  const std::string& problem() const { return problem_; }

 private:
  friend class ProgramLinker;

  const LinkedBlocks& blocks_;
  const Role& role_;
  std::unique_ptr<LinkedBlock> lists_[3];
  Range ranges_[3];
  std::vector<LinkedEntry> entries_;
  std::vector<LinkedCall> calls_;
  std::vector<int> bindings_, after_;
  int values_ = 0, instructions_ = 0;
  std::string problem_;
};

}  // namespace planwright
