#include "planner/recipe/mend_shapes.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/shapes.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

// A text that is read at a glance.
constexpr size_t kShortText = 80;

constexpr MendRow kMends[] = {
#define MEND(where, shape, meant, ...) {where, shape, meant, __VA_ARGS__, true},
#define ASK(where, shape, meant, ...) {where, shape, meant, __VA_ARGS__, false},
#include "planner/recipe/mends.def"
#undef MEND
#undef ASK
};

// A row with its trees, which are made when it is first needed: most recipes need few.
class Mend {
 public:
  explicit Mend(const MendRow& row) : row_(row) {}

  const MendRow& row() const { return row_; }
  // Whether the shape is of such a value at all: its text says it.
  bool MayFit(const YamlNode& value) const {
    const char first = row_.shape[0];
    if (first == '{') return value.is_map() && HasFirstKey(value);
    if (first == '[') return value.is_sequence();
    // Kinds of values that are no maps may be lists.
    return value.is_scalar() || (value.is_sequence() && row_.shape.find('(') != std::string_view::npos);
  }
  const YamlNode& shape() const { return Made(row_.shape, shape_made_, shape_); }
  const YamlNode& meant() const { return Made(row_.meant, meant_made_, meant_); }

 private:
  // The first key of the shape, if it is no capture.
  bool HasFirstKey(const YamlNode& value) const {
    const std::string_view key = row_.shape.substr(1, row_.shape.find_first_of(":,}") - 1);
    return key.starts_with('$') || value.Find(key) != nullptr;
  }

  static const YamlNode& Made(std::string_view text, std::once_flag& made, YamlNode& tree) {
    std::call_once(made, [&] { tree = ShapeOf(text); });
    return tree;
  }

  const MendRow& row_;
  mutable std::once_flag shape_made_, meant_made_;
  mutable YamlNode shape_, meant_;
};

// The rows of each place, and of each type of keys under the name that they have in the table.
const std::vector<const Mend*>& MendsOf(std::string_view where) {
  static const auto* mends = [] {
    auto* all = new std::unordered_map<std::string_view, std::vector<const Mend*>>;
    for (const MendRow& row : kMends) {
      const auto* mend = new Mend(row);
      for (std::string_view left = row.where; !left.empty();) {
        const std::string_view place = left.substr(0, left.find('|'));
        (*all)[place].push_back(mend);
        left.remove_prefix(std::min(place.size() + 1, left.size()));
      }
    }
    return all;
  }();
  static const auto* none = new std::vector<const Mend*>;
  const auto found = mends->find(where);
  return found == mends->end() ? *none : found->second;
}

std::string_view TypeName(const KeySpec* spec) {
  if (spec == nullptr) return "";
  switch (spec->type) {
    case KeyType::kMap: return "<map>";
    case KeyType::kNamedMaps: return "<names>";
    case KeyType::kListOfMaps: return "<list>";
    default: return "";
  }
}

bool HasMap(const YamlNode& node) { return node.is_map() || std::any_of(node.items.begin(), node.items.end(), HasMap); }

// [a: 1] and not `- a: 1`, as far as locations tell.
bool IsInBrackets(const YamlNode& list) {
  if (list.items.empty()) return true;
  const Location &first = list.items[0].where, &last = list.items.back().where;
  return list.items.size() > 1 ? first.line == last.line : first.column == list.where.column + 1;
}

// The text without `<condition|...>`, or with what is in it.
std::string Chosen(std::string_view text, const YamlNode& value, size_t whole) {
  const bool brackets = IsInBrackets(value), one = value.items.size() == 1;
  const std::pair<std::string_view, bool> conditions[] = {{"<short|", whole <= kShortText},
                                                          {"<long|", whole > kShortText},
                                                          {"<brackets|", brackets},
                                                          {"<dash|", !brackets && one},
                                                          {"<dashes|", !brackets && !one}};
  std::string chosen;
  while (!text.empty()) {
    const auto condition = std::find_if(std::begin(conditions), std::end(conditions),
                                        [&](const auto& known) { return text.starts_with(known.first); });
    if (condition == std::end(conditions)) {
      chosen += text[0];
      text.remove_prefix(1);
      continue;
    }
    text.remove_prefix(condition->first.size());
    const size_t end = text.find('>');
    if (condition->second) chosen += text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  return chosen;
}

// What a row makes of a value: the value that is meant, and where the problem is told.
class Mended {
 public:
  Mended(const Mend& mend, const KeySpec* spec, std::string_view where, const YamlNode& value, const std::string& path)
      : mend_(mend), spec_(spec), where_(where), value_(value), path_(path) {}

  // False: the row does not fit.
  bool Fits() {
    if (!HasShape(mend_.shape(), value_, where_, captures_)) return false;
    captures_[""].values = {value_};
    std::optional<YamlNode> meant = FilledIn(mend_.meant(), captures_, value_.where);
    if (!meant || FlowText(*meant) == FlowText(value_)) return false;
    meant_ = *std::move(meant);
    const std::string_view type = TypeName(spec_);
    by_keys_ = meant_.is_map() && type != "<names>" && type != "<list>" &&
               std::any_of(value_.entries.begin(), value_.entries.end(),
                           [&](const YamlEntry& entry) { return !IsGone(entry); });
    return by_keys_ ? KeysAreGood() : IsGood(spec_, value_, meant_);
  }

  void Tell(Diagnostics& problems) const {
    const MendRow& row = mend_.row();
    const YamlEntry* at = by_keys_ ? Changed() : nullptr;
    const YamlNode& found = at != nullptr ? at->value : value_;
    Location where = at != nullptr && row.kind == DiagnosticKind::kUnknownKey ? at->key_where : found.where;
    const std::string path = at != nullptr ? InsidePath(path_, at->key) : path_;
    const std::string whole = FlowText(meant_), meant = at != nullptr ? MeantFor(*at) : whole;
    std::vector<std::pair<std::string, std::string>> texts = {{"{path}", Shown(path)},
                                                              {"{key}", Shown(path.substr(path.rfind('.') + 1))},
                                                              {"{map}", Shown(path_)},
                                                              {"{found}", Describe(found)},
                                                              {"{text}", Printable(found.text)},
                                                              {"{values}", ValuesOf(at)},
                                                              {"{meant}", meant},
                                                              {"{whole}", whole}};
    for (const auto& [name, captured] : captures_) {
      const YamlNode& value = captured.values[0];
      texts.emplace_back(Cat("{$", name, "}"), value.is_scalar() ? Printable(value.text) : FlowText(value));
      if (name.ends_with(".at")) where = value.where;
    }
    Diagnostic& problem = problems.Error(row.kind, where, absl::StrReplaceAll(std::string(row.found), texts),
                                         absl::StrReplaceAll(Chosen(row.help, value_, whole.size()), texts));
    problem.edits = Edits();
    problem.restates = row.restates;
  }

  // The keys that were made up for the kind that is meant: what the author has for them is not known.
  std::vector<std::string> MadeUp() const {
    std::vector<std::string> keys;
    const YamlEntry* at = by_keys_ ? Changed() : nullptr;
    if (at == nullptr || at->key != "kind") return keys;
    for (const YamlEntry& entry : meant_.entries) {
      if (value_.Find(entry.key) == nullptr) keys.push_back(entry.key);
    }
    return keys;
  }

  YamlNode Take() { return std::move(meant_); }

 private:
  static std::string Shown(const std::string& path) { return Printable(path); }

  // What is built of scalars is as its key takes it.
  static bool IsGood(const KeySpec* spec, const YamlNode& was, YamlNode& is) {
    if (spec == nullptr || HasMap(was)) return true;
    std::optional<YamlNode> good = MendedValue(*spec, is);
    if (good) is = *std::move(good);
    return good.has_value();
  }

  bool KeysAreGood() {
    for (YamlEntry& entry : meant_.entries) {
      const YamlEntry* was = value_.Find(entry.key);
      if (was != nullptr && FlowText(was->value) != FlowText(entry.value) &&
          !IsGood(FindKey(where_, entry.key, ""), was->value, entry.value))
        return false;
    }
    return true;
  }

  // The choices of a key.
  std::string ValuesOf(const YamlEntry* at) const {
    const KeySpec* spec = at != nullptr ? FindKey(where_, at->key, "") : spec_;
    return spec != nullptr ? absl::StrJoin(ChoicesOf(*spec), ", ") : "";
  }

  bool IsGone(const YamlEntry& entry) const { return meant_.Find(entry.key) == nullptr; }
  bool IsOther(const YamlEntry& entry) const {
    const YamlEntry* is = meant_.Find(entry.key);
    return is != nullptr && FlowText(is->value) != FlowText(entry.value);
  }

  // The first key of the shape that changes; else of the value, one whose value changes before one that is gone.
  const YamlEntry* Changed() const {
    const std::vector<YamlEntry>& entries = value_.entries;
    for (const YamlEntry& part : mend_.shape().entries) {
      const YamlEntry* entry = value_.Find(part.key);
      if (entry != nullptr && (IsOther(*entry) || IsGone(*entry))) return entry;
    }
    auto at = std::find_if(entries.begin(), entries.end(), [&](const YamlEntry& entry) { return IsOther(entry); });
    if (at == entries.end())
      at = std::find_if(entries.begin(), entries.end(), [&](const YamlEntry& entry) { return IsGone(entry); });
    return at == entries.end() ? nullptr : &*at;
  }

  // What stands for a key: its value, or the first key that is new.
  std::string MeantFor(const YamlEntry& at) const {
    if (const YamlEntry* is = meant_.Find(at.key)) return FlowText(is->value);
    for (const YamlEntry& entry : meant_.entries) {
      if (value_.Find(entry.key) == nullptr) return FlowText(entry.value);
    }
    return "";
  }

  std::vector<Edit> Edits() const {
    const auto edit = [](std::string path, const YamlNode& value) {
      return Edit{std::move(path), value.is_map() && value.entries.empty() ? "" : FlowText(value)};
    };
    if (!by_keys_) return {edit(path_, meant_)};
    std::vector<Edit> edits;
    for (const YamlEntry& entry : value_.entries) {
      if (IsOther(entry)) edits.push_back(edit(InsidePath(path_, entry.key), meant_.Find(entry.key)->value));
    }
    for (const YamlEntry& entry : value_.entries) {
      if (IsGone(entry)) edits.push_back({InsidePath(path_, entry.key), ""});
    }
    for (const YamlEntry& entry : meant_.entries) {
      if (value_.Find(entry.key) == nullptr) edits.push_back(edit(InsidePath(path_, entry.key), entry.value));
    }
    return edits;
  }

  const Mend& mend_;
  const KeySpec* const spec_;
  const std::string_view where_;
  const YamlNode& value_;
  const std::string& path_;
  Captures captures_;
  YamlNode meant_;
  bool by_keys_ = false;  // a map of which only some keys change
};

}  // namespace

std::span<const MendRow> MendRows() { return kMends; }

bool MendShape(std::string_view where, const KeySpec* spec, YamlNode& value, const std::string& path,
               Diagnostics& problems, std::set<std::string, std::less<>>* damaged) {
  for (const std::string_view rows : {where, TypeName(spec)}) {
    if (rows.empty()) continue;
    for (const Mend* mend : MendsOf(rows)) {
      if (!mend->MayFit(value)) continue;
      Mended mended(*mend, spec, where, value, path);
      if (!mended.Fits()) continue;
      mended.Tell(problems);
      if (damaged != nullptr) {
        for (const std::string& key : mended.MadeUp()) damaged->insert(InsidePath(std::string(where), key));
      }
      value = mended.Take();
      return true;
    }
  }
  return false;
}

}  // namespace planwright
