// Every key a recipe may have, in one table: the reader checks against it, and the schema and the reference page are made from
// it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

enum class KeyType {
  kMap,         // a map with keys of the table
  kNamedMaps,   // names of the author's choosing -> maps
  kListOfMaps,  // a list of maps
  kString,
  kInteger,
  kNumber,
  kBool,
  kChoice,       // one of KeySpec::choices
  kStrings,      // a string or a list of strings
  kNumberPair,   // [a, b]
  kIntegerPairs,  // [[a, b], ...], at least one
  kIntegers,      // [a, b, ...], at least one
  kLintLevels,    // numbers of lints -> one of KeySpec::choices
};

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
  KeyType type;
  Need need;
  std::string_view default_text;  // as it would be written; empty if there is none
  KeyRange range;
  std::string_view choices;  // "a|b|c"
  std::string_view help;     // one line
};

std::span<const KeySpec> RecipeKeys();

// The key `word` of the map at `map_path` ("" for the recipe itself) whose `kind` is `kind`; null if there is none.
const KeySpec* FindKey(std::string_view map_path, std::string_view word, std::string_view kind);

// The keys of the map at `map_path`, of every kind, in the table's order.
std::vector<const KeySpec*> KeysOf(std::string_view map_path);

// Last part of the path: the word that is written.
std::string_view WordOf(const KeySpec& spec);

// The choices one by one.
std::vector<std::string> ChoicesOf(const KeySpec& spec);

// The path of the maps inside `spec`: "modules" -> "modules.<name>", "bridges" -> "bridges[]".
std::string InnerPath(const KeySpec& spec);

}  // namespace planwright
