// The list of evaluation sets that a recipe means where it has none: sets by their names, or what one set has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// `evaluation` without `sets`: {every_samples: 80, samples: 16, seed: 7}, whose set gets a name if it has none, or
// {every_samples: 80, held_out: {samples: 16, seed: 7}}.
struct SetsBesideKeys {
  YamlNode sets;                  // a list of maps, each with a name
  std::vector<std::string> keys;  // of `evaluation`, that are in it
  Location where;                 // of the first of these
  bool by_name = false;           // the first one is the name of a set, and not a key of one
};
// nullopt: it has `sets`, or no other key that could be meant so.
std::optional<SetsBesideKeys> SetsInEvaluation(const YamlNode& evaluation);

// {held_out: {samples: 16, seed: 7}} in place of the list; nullopt: it is no map, or not all of it are maps.
std::optional<YamlNode> SetsOfMap(const YamlNode& sets);

// [{held_out: {samples: 16, seed: 7}}], in which an item has a name for a key; nullopt: none has.
std::optional<YamlNode> SetsOfNamedItems(const YamlNode& sets);

}  // namespace planwright
