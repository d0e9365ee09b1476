#include "planner/recipe/recipe_keys.h"

#include <unordered_map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/recipe/key_tables.h"

namespace planwright {
namespace {

using Bound = KeyRange::Bound;

constexpr GoneKey kGoneKeys[] = {
    {"models.<name>.projector.kind", "delete it: every projector is norm, linear, squared ReLU, linear"},
    {"optimizer.name", "delete it: the optimizer is always AdamW"},
    {"gradients.reduce_dtype",
     "delete it: gradients are summed in fp32, and in fp64 if parameters are fp64; summed in bf16, the loss curve "
     "would "
     "depend on the layout"},
};

// "models.<name>.moe.ffn" -> "models.<name>.moe"
std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// The keys of each map. A recipe is read again for each suggestion that is tried, so that searching counts.
const std::vector<const KeySpec*>& KeysInside(std::string_view map_path) {
  static const auto* maps = [] {
    auto* all = new std::unordered_map<std::string_view, std::vector<const KeySpec*>>;
    for (const KeySpec& spec : RecipeKeys()) (*all)[ParentOf(spec.path)].push_back(&spec);
    return all;
  }();
  static const std::vector<const KeySpec*> kNone;
  const auto found = maps->find(map_path);
  return found == maps->end() ? kNone : found->second;
}

}  // namespace

bool KeyRange::Holds(double value) const { return BrokenBound(value).empty(); }

std::optional<double> KeyRange::Nearest(double value) const {
  if (low_bound == Bound::kInclusive && !(value >= low)) return low;
  if (high_bound == Bound::kInclusive && !(value <= high)) return high;
  return std::nullopt;
}

std::string KeyRange::Text() const {
  // All bounds are whole numbers. As doubles, StrCat would write 16777216 as 1.67772e+07.
  const auto low_text = static_cast<int64_t>(low), high_text = static_cast<int64_t>(high);
  if (low_bound == Bound::kInclusive && high_bound == Bound::kInclusive) return Cat(low_text, " to ", high_text);
  std::vector<std::string> bounds;
  if (low_bound == Bound::kInclusive) bounds.push_back(Cat("at least ", low_text));
  if (low_bound == Bound::kExclusive) bounds.push_back(Cat("above ", low_text));
  if (high_bound == Bound::kInclusive) bounds.push_back(Cat("at most ", high_text));
  if (high_bound == Bound::kExclusive) bounds.push_back(Cat("below ", high_text));
  return absl::StrJoin(bounds, ", ");
}

std::string KeyRange::BrokenBound(double value) const {
  const auto low_text = static_cast<int64_t>(low), high_text = static_cast<int64_t>(high);
  if (low_bound == Bound::kInclusive && !(value >= low)) return Cat("at least ", low_text);
  if (low_bound == Bound::kExclusive && !(value > low)) return Cat("above ", low_text);
  if (high_bound == Bound::kInclusive && !(value <= high)) return Cat("at most ", high_text);
  if (high_bound == Bound::kExclusive && !(value < high)) return Cat("below ", high_text);
  return "";
}

std::span<const KeySpec> RecipeKeys() {
  static const auto* keys = [] {
    auto* all = new std::vector<KeySpec>;
    for (const auto part : {KeysOfModels(), KeysOfTraining(), KeysOfData(), KeysOfEvaluation(), KeysOfRun()})
      all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return *keys;
}

const KeySpec* FindKey(std::string_view map_path, std::string_view word, std::string_view kind) {
  for (const KeySpec* spec : KeysInside(map_path)) {
    if (WordOf(*spec) == word && (spec->kind.empty() || spec->kind == kind)) return spec;
  }
  return nullptr;
}

std::span<const GoneKey> GoneKeys() { return kGoneKeys; }

const GoneKey* FindGoneKey(std::string_view map_path, std::string_view word) {
  for (const GoneKey& gone : kGoneKeys) {
    if (gone.path == Cat(map_path, ".", word)) return &gone;
  }
  return nullptr;
}

std::span<const KeySpec* const> KeysOf(std::string_view map_path) { return KeysInside(map_path); }

std::string KindOf(const YamlNode& map, std::string_view map_path) {
  if (const YamlEntry* kind = map.Find("kind")) return kind->value.text;
  const KeySpec* spec = FindKey(map_path, "kind", "");
  return spec != nullptr ? std::string(spec->default_text) : "";
}

std::string_view WordOf(const KeySpec& spec) {
  const size_t dot = spec.path.rfind('.');
  return dot == std::string_view::npos ? spec.path : spec.path.substr(dot + 1);
}

std::string_view ConstantOf(const KeySpec& spec) {
  constexpr std::string_view kName = "<name>.";
  const size_t at = spec.path.find(kName);
  return at == std::string_view::npos ? spec.path : spec.path.substr(at + kName.size());
}

std::vector<std::string> ChoicesOf(const KeySpec& spec) { return absl::StrSplit(std::string(spec.choices), '|'); }

std::string InnerPath(const KeySpec& spec) {
  if (spec.type == KeyType::kNamedMaps) return Cat(spec.path, ".<name>");
  if (spec.type == KeyType::kListOfMaps) return Cat(spec.path, "[]");
  return std::string(spec.path);
}

}  // namespace planwright
