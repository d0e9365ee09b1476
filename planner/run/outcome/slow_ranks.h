// Ranks that compute much longer than others with the same program: a throttled GPU, a busy core, an uneven load. Such
// a rank ends no run, but all others wait for it in every step.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/recorder_reader.h"

namespace planwright {

// Compares the last 20 steps that all ranks of a role have recorded. A rank is slow if it computed more than 1.5 times
// the median in the first and in the second half of them, and a second longer in all: recorded times are sampled, and a
// short burst of another program is no slow rank. A role needs three ranks.
std::vector<SlowRank> FindSlowRanks(const Plan& plan,
                                    const std::function<std::optional<RankPosition>(int rank)>& read_recorder);

}  // namespace planwright
