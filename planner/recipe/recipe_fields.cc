#include "planner/recipe/recipe_fields.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/scalar.h"

namespace planwright {

// All defaults are parsed together, at the first call.
const YamlNode* DefaultOf(const KeySpec& spec) {
  static const auto* defaults = [] {
    auto* trees = new std::map<std::string_view, YamlNode>;
    for (const KeySpec& key : RecipeKeys()) {
      if (key.default_text.empty()) continue;
      // Without a file: LocationInRecipe then gives no location. A default that is not YAML is a bug of the table.
      Diagnostics problems;
      std::optional<YamlNode> tree = ParseYaml(std::string(key.default_text), {}, problems);
      Require(tree.has_value(), Cat("default of ", key.path));
      trees->emplace(key.default_text, *std::move(tree));
    }
    return trees;
  }();
  const auto found = defaults->find(spec.default_text);
  return found == defaults->end() ? nullptr : &found->second;
}

Location LocationInRecipe(const YamlNode& node) { return node.where.file ? node.where : Location(); }

// The nodes have passed the checks of their keys, so that reading cannot fail.
void ReadValue(const YamlNode& node, int64_t& target) { ReadInteger(node, &target, nullptr); }
void ReadValue(const YamlNode& node, double& target) { ReadNumber(node, &target, nullptr); }
void ReadValue(const YamlNode& node, bool& target) { ReadBool(node, &target, nullptr); }
void ReadValue(const YamlNode& node, std::string& target) { target = node.text; }
void ReadValue(const YamlNode& node, Decimal& target) { target.text = node.text; }
void ReadValue(const YamlNode& node, WordOrCount& target) { target.text = node.text; }
void ReadValue(const YamlNode& node, std::vector<int64_t>& target) {
  target.clear();
  for (const YamlNode& item : node.items) ReadValue(item, target.emplace_back());
}
void ReadValue(const YamlNode& node, DataKind& target) { target = DataKindFromName(node.text).value(); }
void ReadValue(const YamlNode& node, SourceKind& target) { target = SourceKindFromName(node.text).value(); }

RecipeFields RecipeFields::Section(std::string_view word) const { return SectionOf(Spec(word)); }

RecipeFields RecipeFields::SectionOf(const KeySpec& spec) const {
  const YamlEntry* entry = map_ != nullptr ? map_->Find(WordOf(spec)) : nullptr;
  // A value of another type has been reported. Treat it as absent, but keep its location.
  const bool is_map = entry != nullptr && entry->value.is_map();
  RecipeFields fields(is_map ? &entry->value : nullptr, InnerPath(spec),
                      entry != nullptr ? entry->key_where : Location());
  fields.wrong_ = wrong_ || (entry != nullptr && !is_map);
  fields.missing_ = entry == nullptr && spec.need == Need::kRequired && (given() || missing_);
  return fields;
}

RecipeFields RecipeFields::Inner(std::string_view word, const YamlNode& map, const Location& where) const {
  return RecipeFields(&map, InnerPath(Spec(word)), where);
}

const YamlNode* RecipeFields::Value(std::string_view word) const {
  const YamlEntry* entry = map_ != nullptr ? map_->Find(word) : nullptr;
  return entry != nullptr ? &entry->value : nullptr;
}

std::string RecipeFields::Kind() const {
  const KeySpec* spec = FindKey(path_, "kind", "");
  if (spec == nullptr) return "";
  const YamlNode* written = Value("kind");
  return written != nullptr && IsValidValue(*spec, *written) ? written->text : std::string(spec->default_text);
}

// The words come from code, not from a recipe: one that the table does not have is a bug.
const KeySpec& RecipeFields::Spec(std::string_view word) const {
  const KeySpec* spec = FindKey(path_, word, Kind());
  Require(spec != nullptr, Cat("the table has no key ", path_, ".", word));
  return *spec;
}

// Whether a key that is absent has no value.
bool RecipeFields::IsLost(const KeySpec& key) const {
  return wrong_ || (key.need == Need::kRequired && (given() || missing_) && (map_ == nullptr || IsMissing(key, *map_)));
}

// `targets` are the structs that are being filled: those of the caller and, inside a section, the section's own. A key
// whose field belongs to none of them is a mistake in the table of keys.
void RecipeFields::FillAll(const std::vector<StructRef>& targets) const {
  const std::string kind = Kind();
  for (const KeySpec* key : KeysOf(path_)) {
    if (!key->kind.empty() && key->kind != kind) continue;
    const KeyTarget& to = key->target;
    if (to.owner == nullptr) {  // no field; the keys inside such a map fill the same structs
      if (key->type == KeyType::kMap) SectionOf(*key).FillAll(targets);
      continue;
    }
    const auto owner =
        std::find_if(targets.begin(), targets.end(), [&](const StructRef& target) { return target.tag == to.owner; });
    Require(owner != targets.end(), Cat("the key ", key->path, " is bound to a field of another struct"));
    if (to.section) {
      const RecipeFields inside = SectionOf(*key);
      // Keys inside a section may also fill the structs around it, so that the section's struct is added to them.
      std::vector<StructRef> inner = targets;
      inner.push_back(to.section(owner->object, inside.given()));
      if (inner.back().object != nullptr) inside.FillAll(inner);
      continue;
    }
    const YamlNode* value = Value(WordOf(*key));
    if (value != nullptr && IsValidValue(*key, *value)) {
      to.read(*value, ConstantOf(*key), owner->object);
    } else if (to.lose != nullptr && (value != nullptr || IsLost(*key))) {
      to.lose(value != nullptr ? LocationInRecipe(*value) : where_, ConstantOf(*key), owner->object);
    }
  }
}

}  // namespace planwright
