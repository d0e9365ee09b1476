// Converts the text of a scalar to the type of its key. Stricter than YAML, so that a value means the same to every
// reader: integers are plain decimal (no 010, 0x10, 1_000, 1e3), numbers are finite, booleans are only `true` and
// `false`, and a value in quotes is text.
#pragma once

#include <cstdint>
#include <string>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

// Why a scalar does not have the type of its key.
struct ScalarProblem {
  DiagnosticKind kind = DiagnosticKind::kWrongType;
  std::string expected;  // "an integer": for the message "must be an integer, found ..."
  std::string help;
};

// Each returns true and sets `value`, or returns false and sets `problem` (unless it is null).
bool ReadInteger(const YamlNode& node, int64_t* value, ScalarProblem* problem);
bool ReadNumber(const YamlNode& node, double* value, ScalarProblem* problem);
bool ReadBool(const YamlNode& node, bool* value, ScalarProblem* problem);
bool ReadString(const YamlNode& node, std::string* value, ScalarProblem* problem);

}  // namespace planwright
