// The config.json of a model, read by the dialect of its `model_type` (docs/hugging_face.md#what-goes-in).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "planner/exchange/findings.h"
#include "planner/exchange/said_model.h"

namespace planwright {

// All numbers of the model. Without those that are problems; with any problem, they are of no use. `ignored`: paths of
// keys that may stay unread. `dialects` outlive the model.
SaidModel ReadModel(const nlohmann::ordered_json& config, const std::set<std::string>& ignored, Findings& findings,
                    const DialectSet& dialects = BuiltInDialects());

}  // namespace planwright
