// How two plans are compared in a field, and what is said of a difference. Whether the loss curve may hang on it says
// plan_fields.h, of every field; the table of this room has the words: of sections, and of those fields that deserve
// their own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "planner/plan/plan_fields.h"

namespace planwright {

enum class Compare {
  kValue,     // as one value
  kItems,     // a list of maps that are matched by name, and then field by field
  kWhole,     // a long list: one change that says how long it was and is
  kPart,      // inside a kWhole
  kMap,       // values by name, each judged as the map is unless it is told to be harmless
  kHarmless,  // a value of a kMap that the curve does not hang on
};

// Of a field and of what is inside it, unless that has a row of its own.
struct FieldRow {
  std::string_view pattern;  // "modules[].grid.tp"; [] is any item of a list; "modules[]": of the fields of an item
  Compare compare;
  std::string_view area;
  std::string_view effect;  // of a difference; of an item that only one plan has, for kItems
};
std::span<const FieldRow> FieldRows();

struct FieldRule {
  std::string pattern;
  Compare compare = Compare::kValue;
  Curve curve = Curve::kKeeps;
  std::string_view area, effect;
};

// None: a plan has no such field.
std::optional<FieldRule> RuleOf(std::string_view pattern);

// Pattern of a field inside an instruction, wherever the instruction stands: "instruction.op". Other patterns come back
// as they are.
std::string InstructionPattern(const std::string& pattern);

// What an item of a kItems list is called: "language", "language.s0". Empty: it has no name.
std::string ItemName(std::string_view pattern, const nlohmann::ordered_json& item);

}  // namespace planwright
