// What each entry of a linked program touches, as stream_dependencies.h asks for it.
#pragma once

#include <vector>

#include "planner/link/linked_program.h"
#include "planner/plan/stream_dependencies.h"

namespace planwright {

class ProgramAccesses {
 public:
  explicit ProgramAccesses(const LinkedProgram& program);

  // The streams that the program uses. If it uses one, nothing overlaps, the order is that of the program, and `of`
  // must not be called.
  int streams() const { return streams_; }
  const ResourceTree& resources() const { return resources_; }
  const InstructionAccesses& of(size_t entry) const { return accesses_[entry]; }

 private:
  ResourceTree resources_;
  std::vector<InstructionAccesses> accesses_;  // by entry
  int streams_ = 1;
};

}  // namespace planwright
