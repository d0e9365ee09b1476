#include "planner/recipe/units.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/shapes.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

constexpr UnitRow kUnits[] = {
#define UNIT(name, ...) {__VA_ARGS__},
#include "planner/recipe/units.def"
#undef UNIT
};

constexpr int64_t kMostSamples = 1'000'000'000'000'000;

// 10000, 10k or 1e4
std::optional<int64_t> CountOf(const YamlNode& value) {
  YamlNode number = value;
  if (const std::string written = RewrittenNumber(value.text, /*integer=*/true, /*k_is_1024=*/false); !written.empty())
    number.text = written;
  int64_t count = 0;
  return value.is_scalar() && ReadInteger(number, &count, nullptr) ? std::optional(count) : std::nullopt;
}

// A count of the recipe that is at least 1.
std::optional<int64_t> CountAt(const YamlNode& recipe, const std::string& path) {
  const YamlNode* node = NodeAt(recipe, path);
  int64_t count = 0;
  return node != nullptr && ReadInteger(*node, &count, nullptr) && count > 0 ? std::optional(count) : std::nullopt;
}

// The data-parallel lanes of the language module, as its ranks and sizes say; nothing if they do not.
std::optional<int64_t> LanesAt(const YamlNode& recipe) {
  const YamlNode* modules = NodeAt(recipe, "modules");
  std::optional<int64_t> lanes;
  if (modules == nullptr) return lanes;
  for (const YamlEntry& module : modules->entries) {
    const YamlNode* name = module.value.Find("model") == nullptr ? nullptr : &module.value.Find("model")->value;
    const YamlNode* kind = name == nullptr ? nullptr : NodeAt(recipe, Cat("models.", name->text, ".kind"));
    if (kind == nullptr || StatementOf(kind->text) == nullptr || !StatementOf(kind->text)->carries_loss) continue;
    if (lanes) return std::nullopt;  // of two it is not known which is meant
    const std::string path = Cat("modules.", module.key, ".");
    int64_t sizes = 1;
    for (const std::string axis : {"tp", "cp", "pp"}) {
      const std::string size = Cat(path, "parallel.", axis);
      const std::optional<int64_t> parts = NodeAt(recipe, size) == nullptr ? 1 : CountAt(recipe, size);
      if (!parts || *parts > kMostSamples / sizes) return std::nullopt;
      sizes *= *parts;
    }
    const std::optional<int64_t> ranks = CountAt(recipe, path + "placement.ranks");
    if (!ranks || *ranks % sizes != 0) return std::nullopt;
    lanes = *ranks / sizes;
  }
  return lanes;
}

// `keys`: "batch.micro_samples x dp"
std::string Times(const YamlNode& value, const std::string& keys, const YamlNode& recipe) {
  std::optional<int64_t> product = CountOf(value);
  for (const std::string& key : std::vector<std::string>(absl::StrSplit(keys, " x "))) {
    const std::optional<int64_t> factor = key == "dp" ? LanesAt(recipe) : CountAt(recipe, key);
    if (!product || !factor || *product < 0 || *product > kMostSamples / *factor) return "";
    product = *product * *factor;
  }
  return Cat(*product);
}

// Up to a whole step.
std::string DividedBy(const YamlNode& value, const std::string& key, const YamlNode& recipe) {
  const std::optional<int64_t> count = CountOf(value), divisor = CountAt(recipe, key);
  if (!count || !divisor || *count < 1) return "";
  const int64_t step = CountAt(recipe, "batch.global_samples").value_or(1);
  const int64_t steps = ((*count - 1) / *divisor) / step + 1;
  return steps > kMostSamples / step ? "" : Cat(steps * step);
}

// The value as its key takes it: `bfloat16` as bf16. Empty: it is none of its values.
std::string AsItIs(const YamlNode& value, const KeySpec* spec) {
  const std::optional<YamlNode> mended = spec == nullptr ? std::nullopt : MendedValue(*spec, value);
  return mended ? FlowText(*mended) : "";
}

// A scalar in a section or a list, such as {start: $, end: $} or [0.9, $].
std::string InSection(const YamlNode& value, std::string_view section, const std::string& key, const YamlNode& recipe) {
  if (!value.is_scalar()) return "";
  YamlNode meant = ShapeOf(section);
  const YamlNode* there = NodeAt(recipe, key);
  for (size_t i = 0; i < meant.items.size(); ++i) {
    if (meant.items[i].text != "$" && there != nullptr && there->items.size() == meant.items.size())
      meant.items[i] = there->items[i];
  }
  const std::optional<YamlNode> filled = FilledIn(meant, {{"", {{value}}}}, value.where);
  return filled ? FlowText(*filled) : "";
}

// The key that a section or an item of this form has the value under: `start` of {start: $, end: $}.
const KeySpec* InnerSpec(const YamlNode& form, const KeySpec& spec) {
  for (const YamlEntry& entry : form.is_sequence() && !form.items.empty() ? form.items[0].entries : form.entries) {
    if (entry.value.text == "$") return FindKey(InnerPath(spec), entry.key, "");
  }
  return nullptr;
}

// The value in the unit, whether its key takes it or not.
std::string Written(FieldUnit unit, const YamlNode& value, const KeySpec* spec, const std::string& key,
                    const YamlNode& recipe) {
  constexpr std::string_view kTimes = "$ x ", kBy = "$ / ";
  const std::string text = FlowText(value);
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(std::string(RowOf(unit).value), '|'))) {
    if (part == "$") return AsItIs(value, spec);
    if (part == "#") return spec != nullptr && spec->type == KeyType::kInteger ? AsItIs(value, spec) : "";
    if (part.starts_with(kTimes)) return Times(value, part.substr(kTimes.size()), recipe);
    if (part.starts_with(kBy)) return DividedBy(value, part.substr(kBy.size()), recipe);
    if (part.starts_with('{') || part.starts_with('[')) return InSection(value, part, key, recipe);
    const size_t equals = part.find('=');
    if (equals != std::string::npos && part.substr(0, equals) == text) return part.substr(equals + 1);
  }
  return "";
}

}  // namespace

const UnitRow& RowOf(FieldUnit unit) { return kUnits[static_cast<size_t>(unit)]; }

bool IsTaken(const KeySpec& spec, const YamlNode& value) {
  if (spec.type == KeyType::kListOfMaps || spec.type == KeyType::kMap) {
    const std::string inner = InnerPath(spec);
    const auto are_taken = [&](const YamlNode& map) {
      return std::all_of(map.entries.begin(), map.entries.end(), [&](const YamlEntry& entry) {
        const KeySpec* key = FindKey(inner, entry.key, KindOf(map, inner));
        return key == nullptr || IsTaken(*key, entry.value);
      });
    };
    return spec.type == KeyType::kMap ? are_taken(value)
                                      : std::all_of(value.items.begin(), value.items.end(), are_taken);
  }
  return MendedValue(spec, value).has_value();
}

std::string ExpectedInUnit(FieldUnit unit, const KeySpec* spec) {
  const std::string_view form = RowOf(unit).value;
  if (spec == nullptr || form.empty()) return "";
  if (form.starts_with("$ x ") || form.starts_with("$ / ")) return "an integer of 0 or more";
  if (!form.starts_with('{') && !form.starts_with('[')) return ValueText(*spec);
  const std::string shown = absl::StrReplaceAll(std::string(form), {{"$", "X"}, {"<encoder>", "ENCODER"}});
  if (spec->type == KeyType::kNumberPair) return Cat(shown, ", where X is a number, ", RangeText(spec->range));
  const KeySpec* inner = InnerSpec(ShapeOf(form), *spec);
  return inner == nullptr ? "" : Cat(shown, ", where X is: ", ValueText(*inner));
}

std::string InUnit(FieldUnit unit, const YamlNode& value, const KeySpec* spec, const std::string& key,
                   const YamlNode& recipe) {
  const std::string written = Written(unit, value, spec, key, recipe);
  const std::optional<YamlNode> tree = written.empty() ? std::nullopt : ParseValue(written);
  return spec == nullptr || !tree || IsTaken(*spec, *tree) ? written : "";
}

std::string Saying(std::string_view text, const FieldWord& word, UnitTexts texts) {
  const std::string why(word.why);
  texts.emplace_back("{whose}", Cat("`", word.word, "` of ", word.of));
  texts.emplace_back("{why}", why);
  texts.emplace_back("{; why}", why.empty() ? "" : Cat("; ", why));
  texts.emplace_back("{why or same}", why.empty() ? ", with the same value" : Cat(": ", why));
  return absl::StrReplaceAll(std::string(text), texts);
}

std::vector<std::string> KeysOfWord(const FieldWord& word) {
  if (word.keys.empty()) return {};
  return absl::StrSplit(
      absl::StrReplaceAll(std::string(word.keys), {{"<encoder>", "<name>"}, {"<language>", "<name>"}}), '|');
}

std::string AnswerOf(const FieldWord& word) {
  const std::string keys = absl::StrJoin(KeysOfWord(word), " or ");
  return Saying(RowOf(word.unit).answer, word, {{"{keys}", keys}, {"{last}", keys.substr(keys.rfind('.') + 1)}});
}

}  // namespace planwright
