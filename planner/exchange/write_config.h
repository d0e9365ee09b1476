// The config.json of a run, so that transformers opens what was exported (docs/hugging_face.md#what-comes-home).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/model_sizes.h"
#include "planner/exchange/read_model.h"
#include "planner/plan/plan.h"

namespace planwright {

// A problem for each number of the run that no config.json of this kind can say.
void CheckExpressible(const ModelSizes& sizes, ConfigKind kind, Findings& findings);

// In transformers' dialect. `dtype`: of the tensors. Adds a line for each key whose value no run has to `made_up`.
nlohmann::ordered_json ConfigOf(const Plan& plan, const ModelSizes& sizes, ConfigKind kind, DType dtype,
                                std::vector<std::string>& made_up);

}  // namespace planwright
