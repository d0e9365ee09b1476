// Every key a recipe may have, in one table: what it is, what it may be, what it is when absent, and which field it
// fills. The reader checks against it and fills by it; the schema and the reference page are made from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/recipe/key_target.h"

namespace planwright {

enum class Need {
  kRequired,  // wherever its map is given
  kOptional,
  kNotBuilt,  // known, checked, and refused: this version cannot do it yet
};

// What a number, or each number of a list, must keep to.
struct KeyRange {
  enum class Bound { kNone, kInclusive, kExclusive };
  Bound low_bound = Bound::kNone, high_bound = Bound::kNone;
  double low = 0, high = 0;

  bool Holds(double value) const;
  std::string Broken(double value) const;  // the bound that `value` breaks: "at least 1"; empty if it holds
};

struct KeySpec {
  // "batch.global_samples"; <name> stands for a name of the author's, [] for each item of a list.
  std::string_view path;
  // The `kind` beside the key for which it exists: the same word may be a key of several kinds. Empty: always (the
  // keys of a section exist where the section does).
  std::string_view kind;
  KeyTarget target;
  Need need;
  std::string_view default_text;  // as it would be written; empty if there is none
  KeyRange range;
  std::string_view choices;  // "a|b|c"
  std::string_view help;     // one line
  // A text with choices is one of them.
  KeyType type = target.type == KeyType::kString && !choices.empty() ? KeyType::kChoice : target.type;
};

std::span<const KeySpec> RecipeKeys();

// The key `word` of the map at `map_path` ("" for the recipe itself) whose `kind` is `kind`; null if there is none.
const KeySpec* FindKey(std::string_view map_path, std::string_view word, std::string_view kind);

// The keys of the map at `map_path`, of every kind, in the table's order.
std::vector<const KeySpec*> KeysOf(std::string_view map_path);

// Last part of the path: the word that is written.
std::string_view WordOf(const KeySpec& spec);

// Of a key inside a model: its path there, as the constants of modules are called ("mamba.heads").
std::string_view ConstantOf(const KeySpec& spec);

// The choices one by one.
std::vector<std::string> ChoicesOf(const KeySpec& spec);

// The path of the maps inside `spec`: "modules" -> "modules.<name>", "bridges" -> "bridges[]".
std::string InnerPath(const KeySpec& spec);

}  // namespace planwright
