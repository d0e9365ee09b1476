// The `models` of a recipe, of sizes that were read.
#pragma once

#include <string>

#include "planner/exchange/said_model.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// What a model is called in `models`: as its dialect is.
std::string NameInRecipe(const SaidModel& model, const SaidPart& part);

// A file to extend: its `models`, and the image token as `data` for the recipes that extend it. A comment beside each
// number says where it came from. `source`: the folder, for the first line; `kind`: what its config.json is of.
// `weights`: the folder as the file names it, as YAML, for a comment that WeightsInComment finds; empty: without one.
YamlNode ModelsTree(const SaidModel& model, const std::string& source, const std::string& kind,
                    const std::string& weights = "");

// Where a number of such a tree came from; empty: it does not say it.
std::string SourceOf(const YamlNode& number);

// The folder of weights that a comment of such a file names. Empty: none does. It is a comment, as a recipe that
// extends several files says itself which weights are whose.
std::string WeightsInComment(const std::string& text);

}  // namespace planwright
