// Changes of a recipe's tree, as suggestions of helps have them (Edit in diagnostic.h), and the paths of its values:
// "modules.language.parallel.tp", "bridges[0].token", "data.image_grids[1]".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_text.h"  // values of edits are FlowText
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// The path of a key inside the value of `path`; "" is the recipe itself.
std::string InsidePath(const std::string& path, std::string_view key);

// A key or value of a tree. `node` belongs to the tree.
struct TreePlace {
  std::string path;
  const YamlNode* node = nullptr;
};

// The value that begins at a location, or whose key does; nothing if none does.
std::optional<TreePlace> PlaceAt(const YamlNode& tree, const Location& where);

// The value of a path; null if there is none.
const YamlNode* NodeAt(const YamlNode& tree, const std::string& path);

// Puts a value at a path, as it is: with the locations that it has. Maps that are missing on the way are made. False,
// and nothing is changed, if the path leads through a value that is no map, or to an item that is not there.
bool PutValue(const std::string& path, YamlNode value, YamlNode& tree);

// Sets the location of a value and of all that is in it.
void Relocate(YamlNode& node, const Location& where);

// Applies the edits in order. Maps that are missing on the way are made; a value keeps the location and the comments of
// the one that it replaces, and a new one gets the location of the map around it. The comments of a key that is removed
// go to the next one that is made, or else to the end of the tree. Edits that cannot be applied are left out: a path
// through a value that is no map, an item that is not there, a value that is not YAML.
void ApplyEdits(std::span<const Edit> edits, YamlNode& tree);

}  // namespace planwright
