// The table of keys as people read it: the page docs/recipe_reference.md, and one key alone.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// The whole page, in Markdown.
std::string RecipeReference();

// What is known of the keys that `path` names ("batch.global_samples", "modules.language.parallel.tp",
// "models.<name>.moe"), with those inside them; empty if there is none.
std::string ExplainKey(std::string_view path);

}  // namespace planwright
