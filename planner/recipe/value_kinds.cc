#include "planner/recipe/value_kinds.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"
#include "planner/recipe/other_devices.h"
#include "planner/recipe/scalar.h"

namespace planwright {
namespace {

std::optional<ValueParts> Holds(bool good) { return good ? std::optional<ValueParts>(ValueParts()) : std::nullopt; }

std::optional<ValueParts> AsScalar(const YamlNode& value) { return Holds(value.is_scalar() && !value.text.empty()); }

std::optional<ValueParts> AsAny(const YamlNode&) { return ValueParts(); }

std::optional<ValueParts> AsMap(const YamlNode& value) { return Holds(value.is_map()); }

std::optional<ValueParts> AsInteger(const YamlNode& value) {
  int64_t number = 0;
  return Holds(ReadInteger(value, &number, nullptr));
}

std::optional<ValueParts> AsLetter(const YamlNode& value) { return Holds(value.is_scalar() && value.text.size() == 1); }

std::optional<ValueParts> AsRanks(const YamlNode& value) {
  const std::optional<RanksInARow> ranks = ReadRanksInARow(value);
  if (!ranks) return std::nullopt;
  return ValueParts{{"first", ScalarNode(Cat(ranks->first), value.where)},
                    {"count", ScalarNode(Cat(ranks->count), value.where)}};
}

template <typename IsNumber>
std::optional<ValueParts> ListOfTwo(const YamlNode& value, const IsNumber& is_number) {
  if (!value.is_scalar() || value.text.empty()) return std::nullopt;
  const std::string numbers = absl::StrReplaceAll(value.text, {{"x", ", "}, {"(", ""}, {")", ""}});
  std::optional<YamlNode> list = ParseValue(Cat("[", numbers, "]"));
  if (!list || list->items.size() != 2 || !std::all_of(list->items.begin(), list->items.end(), is_number))
    return std::nullopt;
  list->where = value.where;
  for (YamlNode& item : list->items) item.where = value.where;
  return ValueParts{{"list", *std::move(list)}};
}

std::optional<ValueParts> AsNumbers(const YamlNode& value) {
  return ListOfTwo(value, [](const YamlNode& item) {
    double number = 0;
    return ReadNumber(item, &number, nullptr);
  });
}

std::optional<ValueParts> AsIntegers(const YamlNode& value) {
  return ListOfTwo(value, [](const YamlNode& item) { return AsInteger(item).has_value(); });
}

// What does not begin with -- belongs to the option before it.
std::optional<ValueParts> AsCutOptions(const YamlNode& value) {
  YamlNode whole = value;
  whole.items.clear();
  const YamlNode* piece = nullptr;
  for (const YamlNode& item : value.items) {
    const bool cut = item.is_scalar() && !item.text.starts_with('-') && !whole.items.empty() &&
                     whole.items.back().text.find('=') != std::string::npos;
    if (!cut) {
      whole.items.push_back(item);
      continue;
    }
    if (piece == nullptr) piece = &item;
    Append(whole.items.back().text, ",", item.text);
    whole.items.back().quoted = true;
  }
  if (piece == nullptr) return std::nullopt;
  return ValueParts{{"whole", std::move(whole)}, {"at", *piece}};
}

std::optional<ValueParts> AsDuration(const YamlNode& value) {
  int64_t number = 0;
  if (!value.is_scalar() || value.text.size() < 2) return std::nullopt;
  YamlNode count = value;
  const char unit = absl::ascii_tolower(value.text.back());
  count.text.pop_back();
  count.quoted = false;
  if (!ReadInteger(count, &number, nullptr) || number < 1 || number > 10'000) return std::nullopt;
  if (unit != 'd' && unit != 'h' && unit != 'm') return std::nullopt;
  const std::string time = unit == 'd'   ? absl::StrFormat("%d-00:00:00", number)
                           : unit == 'h' ? absl::StrFormat("%d:00:00", number)
                                         : absl::StrFormat("%d:%02d:00", number / 60, number % 60);
  return ValueParts{{"time", ScalarNode(time, value.where, /*quoted=*/true)}};
}

std::optional<ValueParts> AsDataSheet(const YamlNode& value) {
  const std::string figures = value.is_scalar() ? FiguresOfDevice(value.text) : "";
  std::optional<YamlNode> map = figures.empty() ? std::nullopt : ParseValue(figures);
  if (!map) return std::nullopt;
  const bool runs = !value.text.starts_with("mi");
  return ValueParts{{"figures", *std::move(map)},
                    {"runs", ScalarNode(runs ? "" : ", and ranks do not run on it", value.where)}};
}

struct ValueKind {
  std::string_view name;
  std::optional<ValueParts> (*parts)(const YamlNode& value);
};
constexpr ValueKind kKinds[] = {{"scalar", AsScalar},        {"any", AsAny},           {"map", AsMap},
                                {"integer", AsInteger},      {"letter", AsLetter},     {"ranks", AsRanks},
                                {"numbers", AsNumbers},      {"integers", AsIntegers}, {"cut", AsCutOptions},
                                {"data_sheet", AsDataSheet}, {"duration", AsDuration}};

}  // namespace

std::optional<ValueParts> PartsOfKind(std::string_view kind, const YamlNode& value) {
  for (const ValueKind& known : kKinds) {
    if (known.name == kind) return known.parts(value);
  }
  Bug(Cat("there is no kind of values ", kind));
}

}  // namespace planwright
