// A linked program as the derived order sees it (planner/plan/stream_order.h): of each entry its stream and what it
// touches.
#pragma once

#include <vector>

#include "planner/link/linked_program.h"
#include "planner/plan/stream_order.h"

namespace planwright {

class ProgramOrder {
 public:
  explicit ProgramOrder(const LinkedProgram& program);

  // Streams that the program uses; one: nothing overlaps, and the order is the program's.
  int streams() const { return streams_; }
  const ResourceTree& resources() const { return resources_; }
  const StreamOrder::Step& step(size_t entry) const { return steps_[entry]; }

 private:
  ResourceTree resources_;
  std::vector<StreamOrder::Step> steps_;  // by entry
  int streams_ = 1;
};

}  // namespace planwright
