// How two plans are compared in a field, and what is said of a difference. plan_fields.h says of every field whether
// the loss curve depends on it. The table of this file has the words: for whole sections, and for those fields that
// need words of their own.
//
// A field is named by a pattern: its path in the plan's file, with [] for any item of a list, such as
// "modules[].grid.tp". Fields of instructions are "instruction.op", in blocks and in roles.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nlohmann/json.hpp"
#include "planner/plan/plan_fields.h"

namespace planwright {

enum class CompareAs {
  kValue,     // one value
  kItems,     // a list of maps, matched by name and then compared field by field
  kWhole,     // a long list: one change that says how long it was and is
  kPart,      // inside a kWhole
  kMap,       // values by name, each judged like the map, except for those that are kHarmless
  kHarmless,  // a value of a kMap that the loss curve does not depend on
};

// Words for a field and all that is inside it, except for what has a row of its own.
struct FieldRow {
  std::string_view pattern;  // "modules[]" is the fields of an item, "modules" the list
  CompareAs compare;
  std::string_view area;    // PlanChange::area
  std::string_view effect;  // of a difference; for kItems, of an item that only one plan has
};
std::span<const FieldRow> FieldRows();

// The words of the innermost row around a field, and what plan_fields.h says of the field.
struct FieldRule {
  std::string pattern;
  CompareAs compare = CompareAs::kValue;
  Curve curve = Curve::kKeeps;
  std::string_view area, effect;
};

// Nothing if a plan has no such field.
std::optional<FieldRule> RuleOf(std::string_view pattern);

// "blocks[].body[].op" and "roles[].step[].op" to "instruction.op". Other patterns come back as they are.
std::string InstructionPattern(const std::string& pattern);

// The name by which an item of a kItems list is matched: "language", "language.s0".
std::string ItemName(std::string_view pattern, const nlohmann::ordered_json& item);

// What is shown of an item that only one plan has: its name, or what that name stands for.
std::string ItemValue(std::string_view pattern, const nlohmann::ordered_json& item);

}  // namespace planwright
