// The config.json of a run, so that transformers opens what was exported (docs/hugging_face.md#what-comes-home).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/kept_keys.h"
#include "planner/exchange/said_model.h"
#include "planner/plan/plan.h"

namespace planwright {

struct WrittenConfig {
  const Dialect* dialect = nullptr;  // null: none writes models of these kinds
  nlohmann::ordered_json config;
  SaidModel read;                    // what the dialect reads of it
  std::vector<std::string> made_up;  // keys whose values no run has, a line each
  std::vector<std::string> kept;     // the same, of those that KeptKeys has
};

// In the first dialect that can say what the run is, or, if none can, in the one with the fewest problems. `dtype`: of
// the tensors. `kept`: come before what would be made up. A problem for each number of the run that is another one when
// the config is read back.
WrittenConfig ConfigOf(const Plan& plan, const SaidModel& run, DType dtype, Findings& findings,
                       const KeptKeys& kept = {});

}  // namespace planwright
