// The table of keys as text for people: the page docs/recipe_reference.md, and the text of `plan explain KEY`.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// The whole page, in Markdown.
std::string RecipeReference();

// The text about the key at `path` and the keys inside it. Paths may have names of a recipe or placeholders:
// "batch.global_samples", "modules.language.parallel.tp", "models.<name>.moe". Empty if there is no such key.
std::string ExplainKey(std::string_view path);

}  // namespace planwright
