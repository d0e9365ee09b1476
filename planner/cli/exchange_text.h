// What `plan import` and `plan export` print of findings.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "planner/exchange/findings.h"

namespace planwright {

// "N problems", and a line for each; then a line for each note.
std::string FindingsText(const Findings& findings);

// Adds "problems" [{"where", "value", "message"}] and "notes".
void AddFindings(const Findings& findings, nlohmann::ordered_json& json);

// The parts of "a,b,c". InvalidArgument, with the name of the option, for an empty part.
absl::StatusOr<std::set<std::string>> ListOption(const std::string& name, const std::string& text);

}  // namespace planwright
