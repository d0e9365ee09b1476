#include "planner/recipe/override_keys.h"

#include "planner/base/text/text.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

// The value of `key`; an empty node if it is absent: keys that are not in the recipe are completed too.
const YamlNode& Child(const YamlNode& map, std::string_view key) {
  static const YamlNode kNothing;
  const YamlEntry* entry = map.is_map() ? map.Find(key) : nullptr;
  return entry ? entry->value : kNothing;
}

// Adds the keys inside `map`. `map_path`: its path in the table of keys; `shown`: its path in the recipe.
void AddKeys(const std::string& map_path, const std::string& shown, const YamlNode& map,
             std::vector<OverrideKey>& keys) {
  const std::string kind = KindOf(map, map_path);
  for (const KeySpec* spec : KeysOf(map_path)) {
    if (!spec->kind.empty() && spec->kind != kind) continue;
    const std::string word(WordOf(*spec)), path = shown.empty() ? word : Cat(shown, ".", word);
    switch (spec->type) {
      case KeyType::kListOfMaps: break;
      case KeyType::kMap: AddKeys(InnerPath(*spec), path, Child(map, word), keys); break;
      case KeyType::kNamedMaps:
        for (const YamlEntry& named : Child(map, word).entries)
          AddKeys(InnerPath(*spec), Cat(path, ".", named.key), named.value, keys);
        break;
      case KeyType::kBool: keys.push_back({path, {"true", "false"}}); break;
      default: keys.push_back({path, spec->choices.empty() ? std::vector<std::string>() : ChoicesOf(*spec)});
    }
  }
}

}  // namespace

std::vector<OverrideKey> OverrideKeys(const YamlNode& recipe) {
  std::vector<OverrideKey> keys;
  AddKeys("", "", recipe, keys);
  return keys;
}

}  // namespace planwright
