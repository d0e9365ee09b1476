// Reads a recipe file into a Recipe: the entry point of this room.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/diagnostics/render.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Reads `path` and the files that it extends, applies `overrides` ("batch.global_samples=64"), checks every key, and
// fills a Recipe. Adds all problems to `problems`. Nothing if a file or an override cannot be read. A recipe with
// errors is returned too, so that later rooms can find more problems in the same run: misspelled keys are corrected,
// and what is missing or wrong is marked (Location::broken). Nothing may be planned from it.
std::optional<Recipe> ReadRecipe(const std::string& path, const std::vector<std::string>& overrides,
                                 Diagnostics& problems);

// The same of a tree, with its files already merged (recipe_tree.h).
std::optional<Recipe> ReadRecipe(YamlNode tree, const std::vector<std::string>& overrides, Diagnostics& problems);

// The same of a text that is no file. `name`: what its locations have for a file.
std::optional<Recipe> ReadRecipeText(const std::string& text, const std::string& name, Diagnostics& problems);

// The recipe of a tree: as ReadRecipe, after its files are merged. Suggestions are tried on changed trees.
Recipe RecipeOfTree(YamlNode tree, Diagnostics& problems);

// Adds the overrides to `texts`, so that messages can show the override that they point at.
void AddOverrides(const std::vector<std::string>& overrides, SourceTexts& texts);

}  // namespace planwright
