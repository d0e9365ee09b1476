// The table of keys as text for people: the page docs/recipe_reference.md, and the text of `plan explain KEY`.
#pragma once

#include <string>
#include <string_view>

#include "planner/recipe/recipe_keys.h"

namespace planwright {

// The whole page, in Markdown.
std::string RecipeReference();

// "integer, 1 to 512": the type, and the choices or the range.
std::string ValueText(const KeySpec& key);

// The text about the key at `path` and the keys inside it. Paths may have names of a recipe or placeholders:
// "batch.global_samples", "modules.language.parallel.tp", "models.<name>.moe". Empty if there is no such key.
std::string ExplainKey(std::string_view path);

}  // namespace planwright
