#include "planner/recipe/units.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/recipe/key_checks.h"
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

std::string Times(const YamlNode& value, const std::string& key, const YamlNode& recipe) {
  const std::optional<int64_t> count = CountOf(value), factor = CountAt(recipe, key);
  return count && factor && *count >= 0 && *count <= kMostSamples / *factor ? Cat(*count * *factor) : "";
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

}  // namespace

const UnitRow& RowOf(FieldUnit unit) { return kUnits[static_cast<size_t>(unit)]; }

std::string InUnit(FieldUnit unit, const YamlNode& value, const KeySpec* spec, const std::string& key,
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
