// Words of other programs under the keys that they are here: their values, and how they are answered (units.def), in
// recipes and by `plan explain --micro-batch-size`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/recipe/field_words.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

struct UnitRow {
  std::string_view value, put, there, unknown, answer;
};
const UnitRow& RowOf(FieldUnit unit);

// The value in the unit of the key, as YAML; empty if it is not known, or refused by the key. `spec`: of the key; null:
// none. `key`: its path in the recipe.
std::string InUnit(FieldUnit unit, const YamlNode& value, const KeySpec* spec, const std::string& key,
                   const YamlNode& recipe);

// Whether the key takes what is written in its place: of a section, or of the items of a list, each of their keys.
bool IsTaken(const KeySpec& spec, const YamlNode& value);

// What the key takes for a value in this unit: "number, at least 0", or "{start: X, end: X}, where X is: number, at
// least 0". Empty for none.
std::string ExpectedInUnit(FieldUnit unit, const KeySpec* spec);

// A text of a row with what it names: {"{key}", "batch.micro_samples"}.
using UnitTexts = std::vector<std::pair<std::string, std::string>>;
std::string Saying(std::string_view text, const FieldWord& word, UnitTexts texts);

// The paths in the table of keys; empty: no key says it.
std::vector<std::string> KeysOfWord(const FieldWord& word);

// "batch.micro_samples, with the same value": the keys, and what becomes of the value.
std::string AnswerOf(const FieldWord& word);

}  // namespace planwright
