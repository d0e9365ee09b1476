// A scalar's text -> a value of the type its key has. Stricter than YAML: integers in plain decimal (no 010, 0x10,
// 1_000, 1e3), numbers finite, booleans `true` and `false` only, and what is in quotes is text.
#pragma once

#include <cstdint>
#include <string>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

struct ScalarProblem {
  DiagnosticKind kind = DiagnosticKind::kWrongType;
  std::string expected;  // "an integer"
  std::string help;
};

// Each: true and the value, or false and the problem (which may be null if the caller does not want it).
bool ReadInteger(const YamlNode& node, int64_t* value, ScalarProblem* problem);
bool ReadNumber(const YamlNode& node, double* value, ScalarProblem* problem);
bool ReadBool(const YamlNode& node, bool* value, ScalarProblem* problem);
bool ReadString(const YamlNode& node, std::string* value, ScalarProblem* problem);

}  // namespace planwright
