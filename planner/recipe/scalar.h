// Converts the text of a scalar to the type of its key. Stricter than YAML, so that a value means the same to every
// reader: integers are plain decimal (no 010, 0x10, 1_000, 1e3), numbers are finite, booleans are only `true` and
// `false`, and a value in quotes is text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Why a scalar does not have the type of its key.
struct ScalarProblem {
  DiagnosticKind kind = DiagnosticKind::kWrongType;
  std::string expected;  // "an integer": for the message "must be an integer, found ..."
  std::string help;
  std::string instead;  // how to write what was probably meant, exactly; empty if that is not known
};

// Each returns true and sets `value`, or returns false and sets `problem` (unless it is null).
// A number in another way of writing, exactly: ".0003", "+5", "1_000", "1e6", "10M"; empty if the text is none.
// `integer`: it must be whole. `k_is_1024`: as for lengths of sequences, in which 8k are 8192.
std::string RewrittenNumber(const std::string& text, bool integer, bool k_is_1024);

bool ReadInteger(const YamlNode& node, int64_t* value, ScalarProblem* problem);
bool ReadNumber(const YamlNode& node, double* value, ScalarProblem* problem);
bool ReadBool(const YamlNode& node, bool* value, ScalarProblem* problem);
bool ReadString(const YamlNode& node, std::string* value, ScalarProblem* problem);

// Consecutive ranks, as some write them: [4, 5, 6, 7] or 4-7.
struct RanksInARow {
  int64_t first = 0, count = 0;
};
std::optional<RanksInARow> ReadRanksInARow(const YamlNode& node);

}  // namespace planwright
