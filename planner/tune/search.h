// Branch and bound over a space: every candidate is cut by a bound, or timed from blocks; those that may be among the
// best are simulated whole, in the order of their bounds (docs/decisions/0025-tune.md).
#pragma once

#include <functional>
#include <vector>

#include "planner/tune/found_layouts.h"
#include "planner/tune/space.h"
#include "planner/tune/tune.h"

namespace planwright {

struct Found {
  std::vector<FoundLayout> whole;  // all that fit and were simulated, fastest first; each plan once
  // Of each other placing and grid, the one with the least bound: what would be chosen if speeds were others.
  std::vector<Candidate> others;
  TuneCounts counts;
  double lower_bound = 0;   // 0: none is known
  double most_seconds = 0;  // of a step: slower candidates were cut, and are complete neither in `whole` nor elsewhere
  bool interrupted = false;
  bool at_limit = false;  // TuneResult::at_limit
};

// `error`: of the times, as a share. `stopped`: asked often; true ends the search with what it has.
Found SearchSpace(const TuneRequest& request, const TunedRecipe& tuned, Space& space, double error,
                  const std::function<bool(int64_t timed)>& stopped);

}  // namespace planwright
