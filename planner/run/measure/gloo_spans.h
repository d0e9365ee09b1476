// How long communications of CPU ranks last in traced steps: until all that wait for them can go on.
#pragma once

#include <optional>
#include <vector>

#include "planner/predict/simulate/replayed_step.h"
#include "planner/wire/records/trace.h"

namespace planwright {

// A member of Gloo goes on when its own part is done, and waits for the last member at the next communication. So all
// members take from the arrival of the last one until the last one is done. And ranks of a node share its network:
// where several of them, in a group each, do the same communication at the same time, whose messages came first into
// the network is done first, and the others later. They are one communication, as they are when a profile times them
// (all groups of a shape at once), and as they are predicted.
class GlooSpans {
 public:
  // Keeps a reference.
  explicit GlooSpans(const RankPrograms& ranks);

  // Seconds, by rank and entry of the step. nullopt: it is no communication, or an exchange, in which each member has
  // its own messages. `traces`: by rank, on one clock.
  std::vector<std::vector<std::optional<double>>> Of(const std::vector<Trace>& traces, int64_t step) const;

 private:
  const RankPrograms& ranks_;
  // By rank and entry: the same communication of other ranks of its node, over groups of the same shape across nodes.
  std::vector<std::vector<std::vector<StepEntry>>> beside_;
};

}  // namespace planwright
