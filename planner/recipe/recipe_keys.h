// The table of keys: every key that a recipe may have, with its type, range, choices, default, help, and the field that
// it fills. The reader checks recipes against this table and fills structs with it. The JSON schema, the reference page
// (docs/recipe_reference.md) and `plan explain KEY` are made from it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/number_range.h"
#include "planner/recipe/key_binding.h"

namespace planwright {

enum class Need {
  kRequired,  // if its map is given
  kOptional,
};

// The range of a key as people read it: "1 to 4096", "1e-6 to 1000000", "at least 0, below 1"; empty without a range.
std::string RangeText(const NumberRange& range);
// The end that `value` is beyond: "at least 1"; empty if it is inside.
std::string BrokenEnd(const NumberRange& range, double value);
// The end that `value` is beyond, if that is inside.
std::optional<double> NearestInside(const NumberRange& range, double value);

struct KeySpec {
  // "batch.global_samples"; <name> stands for a name that the author chooses, [] for each item of a list.
  std::string_view path;
  // The kind of the map for which the key exists; several kinds may have a key of the same name. Empty: all kinds. Keys
  // inside a section have no kind of their own: they exist if the section does.
  std::string_view kind;
  KeyTarget target;
  Need need;
  std::string_view default_text;  // as YAML; empty if there is none
  NumberRange range;              // of a number, or of each number of a list
  std::string_view choices;       // "a|b|c"
  std::string_view help;          // one line: what the value is
  // Of a section that several kinds have, and of the keys in it: the kind. Empty: no other kind has such a section.
  std::string_view section_of = {};
  // The word of the other key in the same map, if a map needs exactly one of the two. Both are required then.
  std::string_view or_key = {};
  // The type of the field, except that a string with choices is a choice.
  KeyType type = target.type == KeyType::kString && !choices.empty() ? KeyType::kChoice : target.type;
};

std::span<const KeySpec> RecipeKeys();

// The key `word` of a map of this kind at `map_path` ("" is the recipe itself); null if there is none.
const KeySpec* FindKey(std::string_view map_path, std::string_view word, std::string_view kind);

// A key that an earlier version had. A recipe that writes it gets an error with this help. (Keys that had one legal
// value are gone: docs/decisions/0014-what-the-plan-and-the-recipe-keep.md.)
struct GoneKey {
  std::string_view path;  // as KeySpec::path
  std::string_view help;  // what to do, and what holds without it
  // Where the value belongs now: a key beside it, and the value there, with the old one in the place of $. Empty:
  // nowhere.
  std::string_view now, form;
};
// Null if there never was one.
const GoneKey* FindGoneKey(std::string_view map_path, std::string_view word);
std::span<const GoneKey> GoneKeys();

// A choice that a key of an earlier version had.
struct GoneValue {
  std::string_view path, value;
  std::string_view now;   // the choice that has its work
  std::string_view help;  // what to write
};
// Null if there never was one.
const GoneValue* FindGoneValue(std::string_view path, std::string_view value);
std::span<const GoneValue> GoneValues();

// The keys of the maps at `map_path`, of all kinds, in the order of the table.
std::span<const KeySpec* const> KeysOf(std::string_view map_path);

// Whether the map of a section that several kinds have is meant ("models.<name>.attention<KIND>"): the path for all of
// them, and the kind. Nothing: another map.
struct SectionOfKind {
  std::string_view path, kind;
};
std::optional<SectionOfKind> SectionOfKindAt(std::string_view map_path);

// The kinds whose maps at `map_path` have this key, if it is a key of some kinds alone. `map_path`: as of FindKey.
std::vector<std::string> KindsWith(std::string_view map_path, std::string_view word);

// The keys whose path ends in a word, in all maps and of all kinds, in the order of the table.
std::span<const KeySpec* const> KeysCalled(std::string_view word);

// The kind of a map of a recipe: as written (even if wrong), else the default; empty if such maps have no kind.
std::string KindOf(const YamlNode& map, std::string_view map_path);

// Whether a map that was given must have this key, and lacks it, and the other key that may be in its place.
bool IsMissing(const KeySpec& spec, const YamlNode& map);

// The last part of the path: the key as it is written.
std::string_view WordOf(const KeySpec& spec);

// For a key inside a model: its path in the model, which is the name of its constant in the plan ("mamba.heads").
std::string_view ConstantOf(const KeySpec& spec);

// The choices as a list.
std::vector<std::string> ChoicesOf(const KeySpec& spec);

// The path of the maps under this key: "modules" -> "modules.<name>", "bridges" -> "bridges[]", "batch" -> "batch". A
// section that several kinds have is there for each of them: "models.<name>.attention" ->
// "models.<name>.attention<KIND>". By its path without a kind, the keys of all are found.
std::string InnerPath(const KeySpec& spec);

}  // namespace planwright
