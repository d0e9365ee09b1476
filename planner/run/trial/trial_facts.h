// What a trial left in its folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/wire/records/communication_rounds.h"
#include "planner/wire/records/rank_trial.h"
#include "planner/wire/records/step_record.h"

namespace planwright {

struct TrialFacts {
  TrialFiles files;                             // that the nodes were asked to read
  std::vector<std::optional<RankTrial>> ranks;  // by rank; nullopt: it did not come so far
  std::vector<StepRecord> steps;                // of this run
  CommunicationRounds rounds;
  // Median seconds by round and rank; 0: the rank took no part, or did not come so far.
  std::vector<std::vector<double>> round_seconds;
};

// What cannot be read is missing.
TrialFacts ReadTrial(const Plan& plan, const std::string& run_dir);

}  // namespace planwright
