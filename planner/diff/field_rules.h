// Every field of a plan, once: how two plans are compared in it, and whether the loss curve may hang on it. A field without a rule fails the
// tests of this room; who adds a field to the plan says here what it does.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace planwright {

enum class Compare {
  kValue,  // as one value
  kItems,  // a list of maps that are matched by name, and then field by field
  kWhole,  // a long list: one change that says how long it was and is
  kPart,   // inside a kWhole
  kMap,    // values by name, each judged by this rule unless it has one of its own
};

enum class Curve {
  kKeeps,    // no effect on the curve: layout, names, or a number that follows from other fields
  kChanges,  // weights, samples, rates or arithmetic hang on it
  kRates,    // a field of a rate's schedule: the curve changes if the rate does at some step
};

struct FieldRule {
  std::string_view pattern;  // "modules[].grid.tp"; [] is any item of a list
  Compare compare;
  Curve curve;
  std::string_view area;
  std::string_view effect;   // of a difference; of an item that only one plan has, for kItems
};

std::span<const FieldRule> FieldRules();

// Null: the table lacks it. A value of a map has the rule of the map, unless it has its own.
const FieldRule* RuleOf(std::string_view pattern);

// Pattern of a field inside an instruction, wherever the instruction stands: "instruction.op". Other patterns come back as they are.
std::string InstructionPattern(const std::string& pattern);

// What an item of a kItems list is called: "language", "language.s0". Empty: it has no name.
std::string ItemName(std::string_view pattern, const nlohmann::ordered_json& item);

}  // namespace planwright
