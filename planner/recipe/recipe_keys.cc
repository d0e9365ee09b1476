#include "planner/recipe/recipe_keys.h"

#include <cmath>
#include <deque>
#include <unordered_map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/recipe/key_tables.h"

namespace planwright {
namespace {

constexpr GoneKey kGoneKeys[] = {
    {"models.<name>.projector.kind", "delete it: the kind of an encoder says what its projector is"},
    {"optimizer.name", "delete it: the optimizer is always AdamW"},
    {"gradients.reduce_dtype",
     "delete it: gradients are summed in fp32, and in fp64 if parameters are fp64; summed in bf16, the loss curve "
     "would "
     "depend on the layout"},
    {"data.shards", "put them in `sources`: sources: [{kind: webdataset, shards: FILES}]", "sources",
     "[{kind: webdataset, shards: $}]"},
    {"evaluation.sets[].shards", "put them in `sources`: sources: [{kind: webdataset, shards: FILES}]", "sources",
     "[{kind: webdataset, shards: $}]"},
};

constexpr GoneValue kGoneValues[] = {
#define GONE_DATA_KIND(word, help, in_plan) {"data.kind", word, "sources", help},
#include "planner/plan/data_kinds.def"
};

// An end as a recipe writes it: "16777216", "0.001", and beside an end that is not whole "1e9".
std::string EndText(const NumberRange& range, double end) {
  const bool whole = end == std::floor(end) && std::abs(end) <= static_cast<double>(kLargestNumber);
  if (whole && (range.low == std::floor(range.low) || std::abs(end) < 1e5)) return Cat(static_cast<int64_t>(end));
  std::string text = absl::StrFormat("%.6g", end);
  // %g writes 1e-06.
  for (const std::string_view zero : {"e-0", "e+0", "e+"}) {
    const size_t at = text.find(zero);
    if (at != std::string::npos) text.replace(at, zero.size(), zero[1] == '-' ? "e-" : "e");
  }
  return text;
}

std::string LowEnd(const NumberRange& range) {
  return Cat(range.above ? "above " : "at least ", EndText(range, range.low));
}
std::string HighEnd(const NumberRange& range) {
  return Cat(range.below ? "below " : "at most ", EndText(range, range.high));
}

// "models.<name>.moe.ffn" -> "models.<name>.moe"
std::string_view ParentOf(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

// Of a section of one kind.
std::string OfKind(std::string_view path, std::string_view kind) { return Cat(path, "<", kind, ">"); }

// The keys of each map. A recipe is read again for each suggestion that is tried, so that searching counts.
const std::vector<const KeySpec*>& KeysInside(std::string_view map_path) {
  static const auto* maps = [] {
    auto* all = new std::unordered_map<std::string_view, std::vector<const KeySpec*>>;
    auto* of_kinds = new std::deque<std::string>;  // the map above has views of them
    for (const KeySpec& spec : RecipeKeys()) {
      const std::string_view map = ParentOf(spec.path);
      (*all)[map].push_back(&spec);
      if (!spec.section_of.empty() && spec.type != KeyType::kMap)
        (*all)[of_kinds->emplace_back(OfKind(map, spec.section_of))].push_back(&spec);
    }
    return all;
  }();
  static const std::vector<const KeySpec*> kNone;
  const auto found = maps->find(map_path);
  return found == maps->end() ? kNone : found->second;
}

}  // namespace

std::optional<double> NearestInside(const NumberRange& range, double value) {
  if (range.Holds(value)) return std::nullopt;
  const double end = value >= range.high ? range.high : range.low;
  return range.Holds(end) ? std::optional<double>(end) : std::nullopt;
}

std::string RangeText(const NumberRange& range) {
  if (range.any()) return "";
  if (!range.above && !range.below) return Cat(EndText(range, range.low), " to ", EndText(range, range.high));
  return Cat(LowEnd(range), ", ", HighEnd(range));
}

std::string BrokenEnd(const NumberRange& range, double value) {
  if (range.Holds(value)) return "";
  return value >= range.high ? HighEnd(range) : LowEnd(range);
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
  if (const std::optional<SectionOfKind> of_kind = SectionOfKindAt(map_path)) map_path = of_kind->path;
  for (const GoneKey& gone : kGoneKeys) {
    if (gone.path == Cat(map_path, ".", word)) return &gone;
  }
  return nullptr;
}

std::span<const GoneValue> GoneValues() { return kGoneValues; }

const GoneValue* FindGoneValue(std::string_view path, std::string_view value) {
  for (const GoneValue& gone : kGoneValues) {
    if (gone.path == path && gone.value == value) return &gone;
  }
  return nullptr;
}

std::span<const KeySpec* const> KeysOf(std::string_view map_path) { return KeysInside(map_path); }

std::optional<SectionOfKind> SectionOfKindAt(std::string_view map_path) {
  const size_t begin = map_path.rfind('<');
  const bool named = begin != std::string_view::npos && begin > 0 && map_path[begin - 1] == '.';  // models.<name>
  if (begin == std::string_view::npos || named || !map_path.ends_with('>')) return std::nullopt;
  return SectionOfKind{map_path.substr(0, begin), map_path.substr(begin + 1, map_path.size() - begin - 2)};
}

std::vector<std::string> KindsWith(std::string_view map_path, std::string_view word) {
  const std::optional<SectionOfKind> section = SectionOfKindAt(map_path);
  std::vector<std::string> kinds;
  for (const KeySpec* spec : KeysOf(section ? section->path : map_path)) {
    const std::string_view kind = section ? spec->section_of : spec->kind;
    if (WordOf(*spec) == word && !kind.empty()) kinds.emplace_back(kind);
  }
  return kinds;
}

std::span<const KeySpec* const> KeysCalled(std::string_view word) {
  static const auto* words = [] {
    auto* all = new std::unordered_map<std::string_view, std::vector<const KeySpec*>>;
    for (const KeySpec& spec : RecipeKeys()) (*all)[WordOf(spec)].push_back(&spec);
    return all;
  }();
  const auto found = words->find(word);
  return found == words->end() ? std::span<const KeySpec* const>() : found->second;
}

std::string KindOf(const YamlNode& map, std::string_view map_path) {
  if (const YamlEntry* kind = map.Find("kind")) return kind->value.text;
  const KeySpec* spec = FindKey(map_path, "kind", "");
  return spec != nullptr ? std::string(spec->default_text) : "";
}

bool IsMissing(const KeySpec& spec, const YamlNode& map) {
  return spec.need == Need::kRequired && map.Find(WordOf(spec)) == nullptr &&
         (spec.or_key.empty() || map.Find(spec.or_key) == nullptr);
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
  if (!spec.section_of.empty()) return OfKind(spec.path, spec.section_of);
  return std::string(spec.path);
}

}  // namespace planwright
