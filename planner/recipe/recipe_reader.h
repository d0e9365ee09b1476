// The door of this room: a recipe file -> a Recipe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/diagnostics/source_texts.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Reads `path` with all it extends, lays `overrides` ("batch.global_samples=64") over it, checks every key, and fills a
// Recipe. All problems are then in `problems`. Null if there is no recipe to read. With errors it is what the author
// seems to have meant, less the sections in Recipe::damaged, so that later rooms can find the rest of the problems:
// only without errors is it to be trusted.
std::optional<Recipe> ReadRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                 Diagnostics& problems);

// Lets messages show the overrides that they point at.
void AddOverrides(const std::vector<std::string>& overrides, SourceTexts& texts);

}  // namespace planwright
