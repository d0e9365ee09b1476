#include "planner/recipe/recipe_fields.h"

#include <map>
#include <utility>

#include "planner/diagnostics/bug.h"
#include "planner/diagnostics/text.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/scalar.h"

namespace planwright {
namespace {

// Trees of the table's defaults, parsed once.
const YamlNode* DefaultOf(const KeySpec& spec) {
  static const auto* defaults = [] {
    auto* trees = new std::map<std::string_view, YamlNode>;
    for (const KeySpec& key : RecipeKeys()) {
      if (key.default_text.empty()) continue;
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

// A default's place in the table's text is no place of the recipe.
Location PlaceInRecipe(const YamlNode& node) { return node.where.file ? node.where : Location(); }

}  // namespace

RecipeFields RecipeFields::Section(std::string_view word) const {
  const KeySpec& spec = Spec(word);
  const YamlEntry* entry = map_ != nullptr ? map_->Find(word) : nullptr;
  const bool is_map = entry != nullptr && entry->value.is_map();
  return RecipeFields(is_map ? &entry->value : nullptr, std::string(spec.path), entry != nullptr ? entry->key_where : Location());
}

RecipeFields RecipeFields::Inner(std::string_view word, const YamlNode& map, const Location& where) const {
  return RecipeFields(&map, InnerPath(Spec(word)), where);
}

const YamlNode* RecipeFields::Value(std::string_view word) const {
  const YamlEntry* entry = map_ != nullptr ? map_->Find(word) : nullptr;
  return entry != nullptr ? &entry->value : nullptr;
}

const KeySpec& RecipeFields::Spec(std::string_view word) const {
  std::string kind;
  if (const KeySpec* spec = FindKey(path_, "kind", "")) {
    const YamlNode* written = Value("kind");
    kind = written != nullptr && KeepsTo(*spec, *written) ? written->text : std::string(spec->default_text);
  }
  const KeySpec* spec = FindKey(path_, word, kind);
  Require(spec != nullptr, Cat("the table has no key ", path_, ".", word));
  return *spec;
}

const YamlNode* RecipeFields::Good(std::string_view word) const {
  const KeySpec& spec = Spec(word);
  const YamlNode* value = Value(word);
  return value != nullptr && KeepsTo(spec, *value) ? value : DefaultOf(spec);
}

void RecipeFields::Read(std::string_view word, Located<int64_t>& target) const {
  if (const YamlNode* node = Good(word)) {
    ReadInteger(*node, &target.value, nullptr);
    target.where = PlaceInRecipe(*node);
  }
}

void RecipeFields::Read(std::string_view word, Located<double>& target) const {
  if (const YamlNode* node = Good(word)) {
    ReadNumber(*node, &target.value, nullptr);
    target.where = PlaceInRecipe(*node);
  }
}

void RecipeFields::Read(std::string_view word, Located<bool>& target) const {
  if (const YamlNode* node = Good(word)) {
    ReadBool(*node, &target.value, nullptr);
    target.where = PlaceInRecipe(*node);
  }
}

void RecipeFields::Read(std::string_view word, Located<std::string>& target) const {
  if (const YamlNode* node = Good(word)) {
    ReadString(*node, &target.value, nullptr);
    target.where = PlaceInRecipe(*node);
  }
}

void RecipeFields::Read(std::string_view word, std::vector<Located<std::string>>& target) const {
  const YamlNode* node = Good(word);
  if (node == nullptr) return;
  if (node->is_scalar()) target.emplace_back(node->text, PlaceInRecipe(*node));
  for (const YamlNode& item : node->items) target.emplace_back(item.text, PlaceInRecipe(item));
}

void RecipeFields::Read(std::string_view word, std::vector<Located<std::vector<int64_t>>>& target) const {
  const YamlNode* node = Good(word);
  if (node == nullptr) return;
  for (const YamlNode& item : node->items) {
    std::vector<int64_t> pair(2);
    for (int i = 0; i < 2; ++i) ReadInteger(item.items[i], &pair[i], nullptr);
    target.emplace_back(std::move(pair), PlaceInRecipe(item));
  }
}

void RecipeFields::Read(std::string_view word, Located<std::vector<int64_t>>& target) const {
  const YamlNode* node = Good(word);
  if (node == nullptr) return;
  target.where = PlaceInRecipe(*node);
  for (const YamlNode& item : node->items) ReadInteger(item, &target.value.emplace_back(), nullptr);
}

void RecipeFields::ReadPair(std::string_view word, Located<double>& first, Located<double>& second) const {
  const YamlNode* node = Good(word);
  if (node == nullptr) return;
  ReadNumber(node->items[0], &first.value, nullptr);
  ReadNumber(node->items[1], &second.value, nullptr);
  first.where = PlaceInRecipe(node->items[0]);
  second.where = PlaceInRecipe(node->items[1]);
}

}  // namespace planwright
