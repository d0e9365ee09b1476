// Reads an object of a config.json by the lines of a dialect (planner/state/dialect/dialect.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "planner/exchange/config_keys.h"
#include "planner/exchange/said_model.h"

namespace planwright {

// Reads every key of the object: into the language model or the encoder of `model`, or, of a composite, both. What a
// recipe cannot say, and keys that are not known, are problems of `keys`. `ignored`: paths of keys that may stay
// unread.
void ReadByDialect(const Dialect& dialect, ConfigKeys& keys, const std::set<std::string>& ignored, SaidModel& model);

// Whether the object has one of the keys by which such a dialect is known.
bool IsWhere(const Dialect& dialect, const nlohmann::ordered_json& object);

// "model_type" of an object; empty: it has none. One that is no text would count as none, and is a problem.
std::string TypeOfObject(const nlohmann::ordered_json& object, const std::string& path, Findings& findings);

}  // namespace planwright
