// Collections on one line, and the order of keys.
#pragma once

#include <string>
#include <vector>

#include "planner/recipe/format/source_text.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

// Where in the table of keys a value stands.
struct TablePlace {
  std::string path;    // of the maps like this one: "modules.<name>.parallel"
  bool known = false;  // a map whose keys the table has
  bool named = false;  // a map from names that the author chose, whose maps are at `path`
};
inline TablePlace RootPlace() { return {"", true, false}; }
// Of the value of a key in a map, and of the items of a list.
TablePlace Inside(const TablePlace& place, const YamlNode& map, const std::string& key);

// The indices of the entries in the order of the table. A key that it does not have stays behind the one before it.
std::vector<size_t> KeyOrder(const YamlNode& map, const TablePlace& place);

// A key as it is written.
std::string KeyText(const std::string& key);

// "{tp: 2, pp: 1}", "[1, 2]", or a scalar as it is written.
std::string FlowLine(const YamlNode& node, const TablePlace& place, const SourceText& source);

}  // namespace planwright
