// Typed reading of one map of a recipe's tree, by the table of keys. Values that are absent or wrong (CheckKeys has said so)
// leave the table's default, without a place; without a default the target stays as it is.
#pragma once

#include <cstdint>
#include <optional>
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

  // The map under `word`; all defaults if it is absent.
  RecipeFields Section(std::string_view word) const;
  // The map of one name of a map of names, or of one item of a list of maps.
  RecipeFields Inner(std::string_view word, const YamlNode& map, const Location& where) const;

  bool given() const { return map_ != nullptr; }
  const Location& where() const { return where_; }  // the key of the map
  const YamlNode* Value(std::string_view word) const;  // as written; null if absent
  bool Has(std::string_view word) const { return Value(word) != nullptr; }

  void Read(std::string_view word, Located<int64_t>& target) const;
  void Read(std::string_view word, Located<double>& target) const;
  void Read(std::string_view word, Located<bool>& target) const;
  void Read(std::string_view word, Located<std::string>& target) const;
  void Read(std::string_view word, std::vector<Located<std::string>>& target) const;
  void Read(std::string_view word, std::vector<Located<std::vector<int64_t>>>& target) const;
  void Read(std::string_view word, Located<std::vector<int64_t>>& target) const;
  void ReadPair(std::string_view word, Located<double>& first, Located<double>& second) const;

  // Reads only what is written.
  template <typename T>
  void Read(std::string_view word, std::optional<Located<T>>& target) const {
    Located<T> value;
    Read(word, value);
    if (value.where.known()) target = value;
  }

 private:
  RecipeFields(const YamlNode* map, std::string path, Location where) : map_(map), path_(std::move(path)), where_(std::move(where)) {}

  // The value under `word` if it keeps to the table, else the table's default, else null.
  const YamlNode* Good(std::string_view word) const;
  const KeySpec& Spec(std::string_view word) const;

  const YamlNode* map_ = nullptr;
  std::string path_;  // in the table
  Location where_;
};

}  // namespace planwright
