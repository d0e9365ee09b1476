// Shapes of values, and what is meant by a value of a shape: the rows of mends.def. Both are written as YAML with
// captures, in the manner of the syntax rules of Scheme.
//
// In a shape
//   $name          is any scalar, $name(kind) a value of a kind (value_kinds.h); the same name twice is the same value;
//   word, a|b      is this scalar, or one of them;
//   {key: S, ...}  has this key with a value of shape S, and no others;
//     $name: S     is a key that the map has not in the table of keys, and its value;
//     $name(path)  without a value are the keys that maps at `path` have and this one has not: at least one;
//     $name(-)     without a value are all keys that no map has here;
//     $name        without a value are all other keys;
//   [S, S]         are these items; [S, ...] are one or more of shape S, and so is a key before `...`.
// In what is meant, $name is what it was, `$name.part` a part of it that its kind gives, `$` the whole value; a key
// without a value stands for all its keys, and replaces those of the same name that are there. `X, ...` repeats X for
// each of what was repeated; "$name,..." is a text of all with commas between.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// What a capture stands for; several values if the shape repeats it.
struct Captured {
  std::vector<YamlNode> values;
  bool repeated = false;
};
using Captures = std::map<std::string, Captured, std::less<>>;

// The text of a row as a tree. Calls Bug() if it is no YAML.
YamlNode ShapeOf(std::string_view text);

// Whether the value has this shape; then `captures` has what it names. `path`: of the value, in the table of keys.
bool HasShape(const YamlNode& shape, const YamlNode& value, std::string_view path, Captures& captures);

// What is meant; nullopt if a key would be given twice. New nodes are located at `where`.
std::optional<YamlNode> FilledIn(const YamlNode& meant, const Captures& captures, const Location& where);

}  // namespace planwright
