// Branch and bound over a space: every candidate is cut by a bound, or timed from blocks; those that may be among the
// best are simulated whole, in the order of their bounds (docs/decisions/0025-tune.md).
#pragma once

#include <functional>
#include <vector>

#include "planner/search/equal_layouts.h"
#include "planner/search/found_layouts.h"
#include "planner/search/space.h"
#include "planner/search/tune.h"

namespace planwright {

struct Found {
  std::vector<FoundLayout> whole;  // all that fit and were simulated, fastest first; each plan once
  // Of each other placing and grid, the one with the least bound: what would be chosen if speeds were others.
  std::vector<Candidate> others;
  TuneCounts counts;
  double lower_bound = 0;  // of the candidates of the space; 0: none is known
  double even = 0;         // seconds of the fastest of these; 0: none was found
  // Of layouts with other layers in the stages of the language model: what was done, and a bound; 0: none is known.
  int64_t moved_timed = 0, moved_simulated = 0;
  bool moved_all = false;  // all of them were looked at, or have a bound
  double moved_bound = 0;
  double most_seconds = 0;  // of a step: slower candidates were cut, and are complete neither in `whole` nor elsewhere
  bool interrupted = false;
  bool at_limit = false;  // TuneResult::at_limit
};

// `rule`: by which one is chosen in the end. `stopped`: asked often; true ends the search with what it has.
Found SearchSpace(const TuneRequest& request, const TunedRecipe& tuned, Space& space, const ChoiceRule& rule,
                  const std::function<bool(int64_t timed)>& stopped);

}  // namespace planwright
