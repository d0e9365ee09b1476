// One map of a recipe's tree, by the table of keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/diagnostics/location.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

class RecipeFields {
 public:
  explicit RecipeFields(const YamlNode& recipe) : map_(&recipe) {}

  // The map under `word`; empty if it is absent.
  RecipeFields Section(std::string_view word) const;
  // The map of one name of a map of names, or of one item of a list of maps.
  RecipeFields Inner(std::string_view word, const YamlNode& map, const Location& where) const;

  bool given() const { return map_ != nullptr; }
  const Location& where() const { return where_; }     // the key of the map
  const YamlNode* Value(std::string_view word) const;  // as written; null if absent
  bool Has(std::string_view word) const { return Value(word) != nullptr; }

  // The `kind` of the map, which decides what keys it has: as written, or the default; empty if neither is one.
  std::string Kind() const;

  // Puts what is written here, and in sections, into the fields that the table binds its keys to: they are of one of
  // these structs, or of the section's own. Values that are absent or wrong (CheckKeys has said so) leave a field as it
  // was.
  template <typename... Structs>
  void Fill(Structs&... structs) const {
    FillAll({RefTo(structs)...});
  }

 private:
  RecipeFields(const YamlNode* map, std::string path, Location where)
      : map_(map), path_(std::move(path)), where_(std::move(where)) {}

  void FillAll(const std::vector<StructRef>& targets) const;
  RecipeFields SectionOf(const KeySpec& spec) const;
  const KeySpec& Spec(std::string_view word) const;

  const YamlNode* map_ = nullptr;
  std::string path_;  // in the table
  Location where_;
};

// The table's default as a tree; null if it has none.
const YamlNode* DefaultOf(const KeySpec& spec);

}  // namespace planwright
