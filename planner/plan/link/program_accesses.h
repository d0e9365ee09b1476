// What each entry of a linked program touches, as stream_dependencies.h asks for it.
#pragma once

#include <vector>

#include "planner/plan/link/linked_program.h"
#include "planner/plan/stream_dependencies.h"

namespace planwright {

class ProgramAccesses {
 public:
  // Keeps a reference.
  explicit ProgramAccesses(const LinkedProgram& program);

  // The streams that the program uses. If it uses one, nothing overlaps, and the order is that of the program.
  int streams() const { return streams_; }
  const ResourceTree& resources() const { return resources_; }
  // Of an entry of the program. The reference is valid until the next call.
  const InstructionAccesses& of(size_t entry);
  // Of an entry and the one before it, which are done as one at the place of the second (joins.def).
  InstructionAccesses OfBoth(size_t second);

 private:
  // Resources of the storages of a module; -1: not known yet.
  struct StorageResources {
    int parameter = -1, gradient = -1;
  };
  struct StateRange {
    int first = -1, count = 0;  // in state_; -1: not known yet
  };

  bool AddValue(const int* values, int operand, bool writes);
  void AddState(const LinkedInstruction& instruction);
  void AddSlots(const LinkedCall& call, const LinkedInstruction& instruction);
  int ParameterOf(size_t module, int storage);
  int GradientOf(size_t module, int storage);

  const LinkedProgram& program_;
  int streams_ = 1;
  // The numbers of values are given out again, so a resource here is the memory of several values in turn. Freeing and
  // making one in its place conflict, as they should. A value has the number of its resource.
  ResourceTree resources_;
  std::vector<Access> state_;                            // of instructions, one after the other
  std::vector<StateRange> state_of_;                     // by number of the instruction
  std::vector<std::vector<StorageResources>> storages_;  // by module and storage
  InstructionAccesses touched_;                          // the result of `of`
};

}  // namespace planwright
