#include "planner/recipe/fill_defaults.h"

#include "planner/recipe/recipe_fields.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

// Calls `visit` for each key whose field is in this struct or in one of its sections. Optional sections that are not
// given are left out: they have no fields yet.
template <typename Visit>
void ForEachKey(StructRef target, const Visit& visit) {
  for (const KeySpec& key : RecipeKeys()) {
    if (key.target.owner != target.tag) continue;
    if (!key.target.section) {
      visit(key, target.object);
    } else if (const StructRef inner = key.target.section(target.object, false); inner.object != nullptr) {
      ForEachKey(inner, visit);
    }
  }
}

}  // namespace

void FillDefaults(StructRef target) {
  ForEachKey(target, [](const KeySpec& key, void* owner) {
    if (const YamlNode* value = DefaultOf(key)) key.target.read(*value, ConstantOf(key), owner);
  });
}

}  // namespace planwright
