// Ranks that compute much longer than others with the same program: a throttled GPU, a busy core, an uneven load. Such
// a rank ends no run, but all others wait for it in every step.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/launch/recorder_reader.h"
#include "planner/plan/plan.h"

namespace planwright {

struct SlowRank {
  int rank = 0;
  std::string role;
  int64_t first_step = 0, last_step = 0;  // that were compared, from 1
  double seconds = 0;                     // that it computed in a step, waiting not counted; mean over these steps
  double median = 0;                      // of all ranks of the role
};

// Compares the last 20 steps that all ranks of a role have recorded. A rank is slow if it computed more than 1.5 times
// the median in the first and in the second half of them, and a second longer in all: recorded times are sampled, and a
// short burst of another program is no slow rank. A role needs three ranks.
std::vector<SlowRank> FindSlowRanks(const Plan& plan,
                                    const std::function<std::optional<RankPosition>(int rank)>& read_recorder);

// "rank 3 (language.s0) is slow: it computed 0.412 s a step, 1.8 times the median of its role, in steps 81-100"
std::string SlowRankText(const SlowRank& slow);
nlohmann::ordered_json SlowRankJson(const SlowRank& slow);
// nullopt if a field is missing or has another type.
std::optional<SlowRank> SlowRankFrom(const nlohmann::ordered_json& json);

}  // namespace planwright
