// The `models` section of a recipe, as text, of sizes that were read.
#pragma once

#include <map>
#include <string>

#include "planner/exchange/model_sizes.h"

namespace planwright {

inline constexpr char kEncoderName[] = "radio", kLanguageName[] = "nemotron_h";  // in `models`

struct RecipeText {
  struct Number {
    std::string value, from;
  };
  std::string text;
  std::map<int, Number> lines;  // by the line, from 1
};

// A file to extend. A comment beside each number says where it came from. `source`: the folder, for the first line;
// `kind`: what its config.json is of. `weights`: the folder as the file names it, as YAML, for a comment that
// WeightsInComment finds; empty: without one.
RecipeText WriteRecipeText(const ModelSizes& sizes, const std::string& source, const std::string& kind,
                           const std::string& weights = "");

// The folder of weights that a comment of such a file names. Empty: none does. It is a comment, as a recipe that
// extends several files says itself which weights are whose.
std::string WeightsInComment(const std::string& text);

// The id that stands for an image, as the `data` of the recipes that extend the models; empty if there is none.
std::string ImageTokenText(const ModelSizes& sizes);

}  // namespace planwright
