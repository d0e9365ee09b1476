// What the config.json of a published folder says of a model and no run does: kept where a model goes home.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/plan/plan.h"

namespace planwright {

struct KeptKeys {
  std::string folder;                                    // whose config.json says them
  std::map<std::string, nlohmann::ordered_json> values;  // of its language model, by their keys
};

// How long a text may be, and the token that begins one, of the folder that the weights of the module `language` came
// from. Empty: they are from elsewhere, or it is not on this machine.
KeptKeys KeptKeysOf(const Plan& plan, const std::string& language);

}  // namespace planwright
