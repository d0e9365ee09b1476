#include "planner/recipe/key_checks.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "planner/diagnostics/near_name.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"

namespace planwright {
namespace {

// One map of the recipe: its path in the table, its path as the author would say it, and the place to show for it.
struct MapPlace {
  std::string table_path, shown_path;
  Location where;

  std::string Shown(std::string_view word) const {
    return shown_path.empty() ? std::string(word) : Cat(shown_path, ".", Printable(word));
  }
};

constexpr size_t kMostUnknownKeys = 200;

class KeyChecker {
 public:
  explicit KeyChecker(Diagnostics& problems) : problems_(problems) {}

  void CheckMap(YamlNode& node, const MapPlace& place) {
    std::string kind;
    const bool kind_is_good = ReadKind(node, place.table_path, &kind);
    std::set<std::string> given;
    for (const YamlEntry& entry : node.entries) given.insert(entry.key);
    std::vector<YamlEntry> kept;
    for (YamlEntry& entry : node.entries) {
      if (!kind_is_good && entry.key != "kind") continue;  // which keys are right depends on it
      if (FindKey(place.table_path, entry.key, kind) == nullptr) {
        const std::string meant = AddUnknownKey(entry, place, kind);
        if (meant.empty() || !given.insert(meant).second) continue;
        entry.key = meant;
      }
      const KeySpec& spec = *FindKey(place.table_path, entry.key, kind);
      const bool section = place.table_path.empty();
      const int64_t lost = section ? ValuesLost(problems_) : 0;
      CheckValue(spec, entry.value, {InnerPath(spec), place.Shown(entry.key), entry.key_where});
      if (section && ValuesLost(problems_) > lost) damaged_.insert(entry.key);
      kept.push_back(std::move(entry));
    }
    node.entries = std::move(kept);
    for (const KeySpec* spec : KeysOf(place.table_path)) {
      const bool applies = spec->kind.empty() || (kind_is_good && spec->kind == kind);
      if (spec->need != Need::kRequired || !applies || node.Find(WordOf(*spec)) != nullptr) continue;
      problems_.Error(DiagnosticKind::kMissingKey, place.where, Cat("`", place.Shown(WordOf(*spec)), "` is missing"),
                      Cat("add `", WordOf(*spec), "`: ", spec->help));
      if (place.table_path.empty()) damaged_.insert(std::string(WordOf(*spec)));
    }
  }

  void CheckValue(const KeySpec& spec, YamlNode& value, const MapPlace& place);

  // The sections that are damaged.
  std::set<std::string> Finish(const Location& where) {
    if (unknown_keys_ > kMostUnknownKeys) {
      problems_.Error(DiagnosticKind::kUnknownKey, where,
                      Cat(unknown_keys_ - kMostUnknownKeys, " more unknown keys are not listed"), "is this a recipe?");
    }
    return std::move(damaged_);
  }

 private:
  // The `kind` that decides which keys the map has: written or default. False if it is needed and wrong.
  bool ReadKind(const YamlNode& node, const std::string& table_path, std::string* kind) {
    const KeySpec* spec = FindKey(table_path, "kind", "");
    if (spec == nullptr) return true;
    *kind = spec->default_text;
    if (const YamlEntry* entry = node.Find("kind")) *kind = entry->value.text;
    for (const std::string& choice : ChoicesOf(*spec)) {
      if (choice == *kind) return true;
    }
    return false;
  }

  // Returns the key that was meant, or nothing. What has hundreds of unknown keys is no recipe, and its list helps
  // nobody.
  std::string AddUnknownKey(const YamlEntry& entry, const MapPlace& place, const std::string& kind) {
    if (++unknown_keys_ > kMostUnknownKeys) return "";
    std::vector<std::string> known;
    std::string of_kinds;
    for (const KeySpec* spec : KeysOf(place.table_path)) {
      if (spec->kind.empty() || spec->kind == kind) known.emplace_back(WordOf(*spec));
      if (WordOf(*spec) == entry.key) of_kinds = spec->kind;
    }
    const std::string message = Cat("unknown key ", Quoted(entry.key), place.shown_path.empty() ? "" : " in `",
                                    place.shown_path, place.shown_path.empty() ? "" : "`");
    std::string help = Cat("the keys here are ", absl::StrJoin(known, ", "));
    const std::string near = NearName(entry.key, known).value_or("");
    if (!near.empty()) help = Cat("did you mean `", near, "`?");
    if (!of_kinds.empty()) help = Cat("`", entry.key, "` is a key of kind ", of_kinds, ", and this is of kind ", kind);
    problems_.Error(DiagnosticKind::kUnknownKey, entry.key_where, message, std::move(help));
    return near;
  }

  Location PlaceOf(const YamlNode& value, const MapPlace& place) const {
    return value.is_null() ? place.where : value.where;
  }

  void AddWrongType(const YamlNode& value, const MapPlace& place, std::string_view expected, std::string help = "") {
    problems_.Error(DiagnosticKind::kWrongType, PlaceOf(value, place),
                    Cat("`", place.shown_path, "` must be ", expected, ", found ", Describe(value)), std::move(help));
  }

  void CheckSection(YamlNode& value, const MapPlace& place) {
    if (value.is_map()) return CheckMap(value, place);
    AddWrongType(value, place, "a map");
  }

  void CheckNamedMaps(const KeySpec& spec, YamlNode& value, const MapPlace& place) {
    if (!value.is_map()) return AddWrongType(value, place, "a map of names");
    if (value.entries.empty() && spec.need == Need::kRequired) {
      problems_.Error(DiagnosticKind::kMissingKey, place.where, Cat("`", place.shown_path, "` is empty"),
                      std::string(spec.help));
    }
    for (YamlEntry& entry : value.entries) {
      CheckName(entry);
      CheckSection(entry.value, {place.table_path, place.Shown(entry.key), entry.key_where});
    }
  }

  // Names become parts of parameter names, file names and group names.
  void CheckName(const YamlEntry& entry) {
    bool good = !absl::ascii_isdigit(entry.key[0]) && entry.key.size() <= 64;
    for (char c : entry.key) good = good && (absl::ascii_isalnum(c) || c == '_');
    if (good) return;
    problems_.Error(DiagnosticKind::kBadName, entry.key_where, Cat(Quoted(entry.key), " is not a good name"),
                    "names are up to 64 letters, digits and `_`, and do not start with a digit");
  }

  void CheckListOfMaps(YamlNode& value, const MapPlace& place) {
    if (!value.is_sequence()) return AddWrongType(value, place, "a list of maps");
    for (size_t i = 0; i < value.items.size(); ++i) {
      CheckSection(value.items[i], {place.table_path, Cat(place.shown_path, "[", i, "]"), value.items[i].where});
    }
  }

  void CheckStrings(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    if (value.is_scalar()) return CheckString(spec, value, place);
    if (!value.is_sequence() || value.items.empty()) return AddWrongType(value, place, "a text or a list of texts");
    for (const YamlNode& item : value.items) CheckString(spec, item, {place.table_path, place.shown_path, item.where});
  }

  void CheckLintLevels(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    if (!value.is_map()) return AddWrongType(value, place, "a map of lints, such as {PW0407: off}");
    for (const YamlEntry& entry : value.entries) {
      CheckLint(entry);
      const MapPlace level = {"", place.Shown(entry.key), entry.key_where};
      if (!entry.value.is_scalar()) {
        AddWrongType(entry.value, level, "error, warn or off");
      } else {
        CheckChoice(spec, entry.value, level);
      }
    }
  }

  void CheckLint(const YamlEntry& entry) {
    const std::optional<DiagnosticKind> kind = FindKind(entry.key);
    if (kind && IsLint(*kind) && entry.key == KindNumber(*kind)) return;
    std::vector<std::string> lints;
    for (DiagnosticKind lint : AllKinds()) {
      if (IsLint(lint)) lints.emplace_back(KindNumber(lint));
    }
    std::string message = Cat("there is no diagnostic ", Quoted(entry.key));
    std::string help = NearNameHelp(entry.key, lints, "`plan explain` lists all, and marks those that are lints");
    if (kind) {
      message = Cat(KindNumber(*kind), " ", KindName(*kind), " is no lint: it is always an error");
      help = "remove it, and mend the recipe where the error is";
    }
    if (kind && IsLint(*kind)) {
      message = Cat("lints are given by number, found ", Quoted(entry.key));
      help = Cat("write ", KindNumber(*kind));
    }
    problems_.Error(DiagnosticKind::kNotALint, entry.key_where, std::move(message), std::move(help));
  }

  void CheckString(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    std::string text;
    ScalarProblem problem;
    if (!ReadString(value, &text, &problem)) return AddScalarProblem(value, place, problem);
    if (!spec.choices.empty()) CheckChoice(spec, value, place);
  }

  void AddScalarProblem(const YamlNode& value, const MapPlace& place, const ScalarProblem& problem) {
    problems_.Error(problem.kind, PlaceOf(value, place),
                    Cat("`", place.shown_path, "` must be ", problem.expected, ", found ", Describe(value)),
                    problem.help);
  }

  static bool IsNumber(const YamlNode& node, double* value) { return ReadNumber(node, value, nullptr); }
  static bool IsInteger(const YamlNode& node, double* value) {
    int64_t integer = 0;
    if (!ReadInteger(node, &integer, nullptr)) return false;
    *value = static_cast<double>(integer);
    return true;
  }

  void CheckPair(const KeySpec& spec, const YamlNode& value, const MapPlace& place, std::string_view expected,
                 bool (*read)(const YamlNode&, double*)) {
    double number = 0;
    bool good = value.is_sequence() && value.items.size() == 2;
    for (const YamlNode& item : value.items) good = good && read(item, &number);
    if (!good) return AddWrongType(value, place, expected);
    for (const YamlNode& item : value.items) {
      read(item, &number);
      CheckRange(spec, number, item, place);
    }
  }

  void CheckPairs(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    constexpr std::string_view expected = "a list of [rows, columns]";
    if (!value.is_sequence() || value.items.empty()) return AddWrongType(value, place, expected);
    for (const YamlNode& item : value.items) {
      CheckPair(spec, item, {place.table_path, Cat(place.shown_path, "[]"), item.where}, "[rows, columns]",
                &KeyChecker::IsInteger);
    }
  }

  void CheckIntegers(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    double number = 0;
    bool good = value.is_sequence() && !value.items.empty();
    for (const YamlNode& item : value.items) good = good && IsInteger(item, &number);
    if (!good) return AddWrongType(value, place, "a list of integers");
    for (const YamlNode& item : value.items) {
      IsInteger(item, &number);
      CheckRange(spec, number, item, place);
    }
  }

  bool CheckRange(const KeySpec& spec, double number, const YamlNode& value, const MapPlace& place) {
    if (spec.range.Holds(number)) return true;
    problems_.Error(
        DiagnosticKind::kOutOfRange, value.where,
        Cat("`", place.shown_path, "` must be ", spec.range.Broken(number), ", found ", Printable(value.text)),
        std::string(spec.help));
    return false;
  }

  bool CheckScalar(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    ScalarProblem problem;
    std::string text;
    int64_t integer = 0;
    double number = 0;
    bool truth = false, good = false;
    if (spec.type == KeyType::kChoice && value.is_scalar()) return CheckChoice(spec, value, place);
    switch (spec.type) {
      case KeyType::kInteger:
        good = ReadInteger(value, &integer, &problem);
        number = static_cast<double>(integer);
        break;
      case KeyType::kNumber: good = ReadNumber(value, &number, &problem); break;
      case KeyType::kBool: good = ReadBool(value, &truth, &problem); break;
      default: good = ReadString(value, &text, &problem); break;
    }
    if (!good) {
      AddScalarProblem(value, place, problem);
      return false;
    }
    return (spec.type != KeyType::kInteger && spec.type != KeyType::kNumber) || CheckRange(spec, number, value, place);
  }

  bool CheckChoice(const KeySpec& spec, const YamlNode& value, const MapPlace& place) {
    const std::vector<std::string> choices = ChoicesOf(spec);
    for (const std::string& choice : choices) {
      if (choice == value.text) return true;
    }
    std::string help =
        choices.size() == 1 ? Cat("it can only be ", choices[0]) : Cat("it can be ", absl::StrJoin(choices, ", "));
    if (std::optional<std::string> near = NearName(value.text, choices))
      help = Cat("did you mean `", *near, "`? ", help);
    problems_.Error(DiagnosticKind::kUnknownChoice, value.where,
                    Cat("`", place.shown_path, "` cannot be ", Quoted(value.text)), std::move(help));
    return false;
  }

  Diagnostics& problems_;
  std::set<std::string> damaged_;
  size_t unknown_keys_ = 0;
};

void KeyChecker::CheckValue(const KeySpec& spec, YamlNode& value, const MapPlace& place) {
  switch (spec.type) {
    case KeyType::kMap: return CheckSection(value, place);
    case KeyType::kNamedMaps: return CheckNamedMaps(spec, value, place);
    case KeyType::kListOfMaps: return CheckListOfMaps(value, place);
    case KeyType::kStrings: return CheckStrings(spec, value, place);
    case KeyType::kNumberPair:
      return CheckPair(spec, value, place, "a pair of numbers, such as [0.9, 0.95]", &KeyChecker::IsNumber);
    case KeyType::kIntegerPairs: return CheckPairs(spec, value, place);
    case KeyType::kIntegers: return CheckIntegers(spec, value, place);
    case KeyType::kLintLevels: return CheckLintLevels(spec, value, place);
    default: break;
  }
  if (CheckScalar(spec, value, place) && spec.need == Need::kNotBuilt) {
    problems_.Error(DiagnosticKind::kNotBuiltYet, place.where, Cat("`", place.shown_path, "` is not built yet"),
                    Cat("remove it: it would be without effect (", spec.help, ")"));
  }
}

}  // namespace

bool KeepsTo(const KeySpec& spec, const YamlNode& value) {
  Diagnostics problems;
  KeySpec as_built = spec;
  as_built.need = Need::kOptional;
  YamlNode copy = value;
  KeyChecker(problems).CheckValue(as_built, copy, {std::string(spec.path), std::string(spec.path), value.where});
  return problems.empty();
}

std::set<std::string> CheckKeys(YamlNode& recipe, Diagnostics& problems) {
  KeyChecker checker(problems);
  checker.CheckMap(recipe, {"", "", recipe.where});
  return checker.Finish(recipe.where);
}

// What is unknown was left out or put right, and a setting that is refused is still known.
int64_t ValuesLost(const Diagnostics& problems) {
  using enum DiagnosticKind;
  return std::count_if(problems.as_found().begin(), problems.as_found().end(), [](const Diagnostic& problem) {
    const bool harmless = problem.kind == kUnknownKey || problem.kind == kNotALint || problem.kind == kNotBuiltYet ||
                          problem.kind == kConflictingKeys || problem.kind == kGradientPrecision ||
                          problem.kind == kNothingTrains || IsLint(problem.kind);
    return !harmless;
  });
}

}  // namespace planwright
