// One map of a recipe's tree, read with the help of the table of keys: finds its keys and fills structs with their
// values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

class RecipeFields {
 public:
  explicit RecipeFields(const YamlNode& recipe) : map_(&recipe) {}

  // The map under the key `word`; not given() if it is absent.
  RecipeFields Section(std::string_view word) const;
  // One map inside the key `word`: of a name (kNamedMaps), or an item (kListOfMaps). `where`: the location of the name
  // or item.
  RecipeFields Inner(std::string_view word, const YamlNode& map, const Location& where) const;

  bool given() const { return map_ != nullptr; }
  const Location& where() const { return where_; }     // the location of the key of this map
  const YamlNode* Value(std::string_view word) const;  // as written; null if absent
  bool Has(std::string_view word) const { return Value(word) != nullptr; }

  // The `kind` of the map, which decides its keys: as written if that is valid, else the default; empty if it has none.
  std::string Kind() const;

  // Writes the values of this map and of the sections in it into the fields that the table of keys names. The fields
  // belong to one of these structs, or to the struct of a section. A field keeps its value if its key is absent. It is
  // marked as broken if its key is required and absent, or has a wrong value, both of which CheckKeys has reported.
  template <typename... Structs>
  void Fill(Structs&... structs) const {
    FillAll({RefTo(structs)...});
  }

 private:
  RecipeFields(const YamlNode* map, std::string path, Location where)
      : map_(map), path_(std::move(path)), where_(std::move(where)) {}

  void FillAll(const std::vector<StructRef>& targets) const;
  RecipeFields SectionOf(const KeySpec& spec) const;
  bool IsLost(const KeySpec& key) const;
  const KeySpec& Spec(std::string_view word) const;

  const YamlNode* map_ = nullptr;
  std::string path_;  // in the table of keys
  Location where_;
  bool wrong_ = false;    // the map is something else, or is inside such a one
  bool missing_ = false;  // it is absent, but required
};

// The default of a key as a tree; null if it has none.
const YamlNode* DefaultOf(const KeySpec& spec);

}  // namespace planwright
