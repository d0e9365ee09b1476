// The rates that each parameter is stepped with, of a plan with rates by part (docs/training/step.md#rates-by-part).
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// The parts with what they have, and then every trained parameter of every module with its part and its rates.
// Parameters that differ in one number of their names alone share a line: "layers.{0-3,7}.norm.weight". Empty: the
// plan has no parts.
std::string RatesText(const Plan& plan, size_t width);

// The same of one parameter: {"part", "learning_rate", "weight_decay"}; the rates are null of what no step changes, the
// part is null of what is in none.
nlohmann::ordered_json RatesJson(const Plan& plan, const Parameter& parameter);

}  // namespace planwright
