#include "planner/recipe/recipe_digest.h"

#include "nlohmann/json.hpp"
#include "planner/base/digest/sha256.h"
#include "planner/base/json/json_text.h"

namespace planwright {
namespace {

nlohmann::json ToJson(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return nullptr;
    case YamlNode::Kind::kScalar: return node.text;  // as written, so that numbers need no canonical form
    case YamlNode::Kind::kSequence: {
      nlohmann::json list = nlohmann::json::array();
      for (const YamlNode& item : node.items) list.push_back(ToJson(item));
      return list;
    }
    case YamlNode::Kind::kMap: break;
  }
  nlohmann::json map = nlohmann::json::object();  // sorts by key, so that the order in the file does not matter
  for (const YamlEntry& entry : node.entries) map[entry.key] = ToJson(entry.value);
  return map;
}

// The text that the digest is computed from: one line of JSON.
std::string CanonicalText(const YamlNode& recipe) {
  // The order of modules decides the order in which groups are created, but JSON maps are sorted: add it.
  nlohmann::json order = nlohmann::json::array();
  if (const YamlEntry* modules = recipe.Find("modules")) {
    for (const YamlEntry& module : modules->value.entries) order.push_back(module.key);
  }
  return JsonText(nlohmann::json{{"recipe", ToJson(recipe)}, {"module_order", order}});
}

}  // namespace

std::string RecipeDigest(const YamlNode& recipe) { return Sha256Hex(CanonicalText(recipe)); }

}  // namespace planwright
