#include "planner/recipe/key_checks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/meant_words.h"
#include "planner/recipe/mend_shapes.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

// One value of the recipe: its path in the table of keys ("models.<name>"), its path in the recipe ("models.vit"), and
// the location to point at when the value itself has none.
struct KeyContext {
  std::string table_path, shown_path;
  Location where;
  int item = -1;  // of the list that shown_path is; -1: the value itself

  // The path that an edit of this value has.
  std::string EditPath() const { return item < 0 ? shown_path : Cat(shown_path, "[", item, "]"); }

  // The path of a key inside this map.
  std::string Shown(std::string_view word) const {
    return shown_path.empty() ? std::string(word) : Cat(shown_path, ".", Printable(word));
  }
};

// Whether one of the problems, from that of this position on, leaves a value of the recipe unknown. Unknown keys were
// repaired or removed. Of keys that conflict, the values are known.
bool LeavesUnknown(const Diagnostics& problems, size_t from) {
  using enum DiagnosticKind;
  const std::span<const Diagnostic> added = std::span(problems.as_found()).subspan(from);
  return std::any_of(added.begin(), added.end(), [](const Diagnostic& problem) {
    const bool harmless = problem.kind == kUnknownKey || problem.kind == kNotALint ||
                          problem.kind == kConflictingKeys || problem.kind == kNothingTrains || IsLint(problem.kind);
    return !harmless;
  });
}

const std::set<std::string, std::less<>>& NothingTold() {
  static const auto* none = new std::set<std::string, std::less<>>;
  return *none;
}

// Walks through the tree and the table of keys together. CheckX checks a value whose key has type X.
class KeyChecker {
 public:
  KeyChecker(const std::set<std::string, std::less<>>& told, Diagnostics& problems)
      : told_(told), problems_(problems) {}

  // Checks the keys of a map and their values, then looks for required keys that are missing.
  void CheckMap(YamlNode& node, const KeyContext& context) {
    std::string kind;
    const bool kind_is_good = ReadKind(node, context, &kind);
    // The keys as written. A misspelled key is not renamed to one of them: the map would then have this key twice.
    std::set<std::string> given;
    std::map<std::string, std::set<std::string>> files;  // an override or a file that extends may mean a key of another
    for (const YamlEntry& entry : node.entries) given.insert(entry.key), files[FileOf(entry)].insert(entry.key);
    std::vector<YamlEntry> kept;
    for (YamlEntry& entry : node.entries) {
      if (!kind_is_good && entry.key != "kind") continue;  // the kind decides which keys are valid
      if (FindKey(context.table_path, entry.key, kind) == nullptr) {
        const std::string meant = AddUnknownKey(entry, files[FileOf(entry)], context, kind);
        if (meant.empty() || !given.insert(meant).second) continue;  // dropped: unknown, or the key meant is there too
        entry.key = meant;
      }
      const KeySpec& spec = *FindKey(context.table_path, entry.key, kind);
      const size_t told = problems_.as_found().size();
      CheckValue(spec, entry.value, {InnerPath(spec), context.Shown(entry.key), entry.key_where});
      // What is lost inside a map is remembered by the keys there.
      if (LeavesUnknown(problems_, told) && !IsContainer(spec, entry.value)) damaged_.emplace(spec.path);
      kept.push_back(std::move(entry));
    }
    node.entries = std::move(kept);
    // With a wrong kind, only the keys that all kinds have are known to be required.
    for (const KeySpec* spec : KeysOf(context.table_path)) {
      const bool applies = spec->kind.empty() || (kind_is_good && spec->kind == kind);
      if (!applies) continue;
      CheckOther(*spec, node, context);
      if (!IsMissing(*spec, node)) continue;
      damaged_.emplace(spec->path);
      const bool told = told_.contains(context.Shown(WordOf(*spec))) || told_.contains(context.Shown(spec->or_key));
      // Of two keys for one thing the first is told.
      if (told || (!spec->or_key.empty() && FindKey(context.table_path, spec->or_key, kind) < spec)) continue;
      const std::string other = spec->or_key.empty() ? "" : Cat("; or `", spec->or_key, "` in its place");
      problems_.Error(DiagnosticKind::kMissingKey, context.where,
                      Cat("`", context.Shown(WordOf(*spec)), "` is missing"),
                      Cat("add `", WordOf(*spec), "`: ", spec->help, other));
    }
  }

  void CheckValue(const KeySpec& spec, YamlNode& value, const KeyContext& context);

  // The paths of values that are missing or wrong, in the table of keys. `where`: the recipe.
  std::set<std::string, std::less<>> Finish(const Location& where) {
    if (unknown_keys_ > kMostUnknownKeys) {
      problems_.Error(DiagnosticKind::kUnknownKey, where,
                      Cat(unknown_keys_ - kMostUnknownKeys, " more unknown keys are not listed"),
                      "check that the file is a recipe");
    }
    return std::move(damaged_);
  }

 private:
  static std::string FileOf(const YamlEntry& entry) {
    return entry.key_where.file ? *entry.key_where.file : std::string();
  }

  // Of two keys for one thing, a map has one.
  void CheckOther(const KeySpec& spec, const YamlNode& node, const KeyContext& context) {
    const YamlEntry* first = spec.or_key.empty() ? nullptr : node.Find(WordOf(spec));
    const YamlEntry* second = first == nullptr ? nullptr : node.Find(spec.or_key);
    if (second == nullptr || !damaged_.emplace(spec.path).second || damaged_.contains(OtherPath(spec))) return;
    Diagnostic& problem =
        problems_.Error(DiagnosticKind::kConflictingKeys, second->key_where,
                        Cat("`", context.Shown(spec.or_key), "` and `", WordOf(spec), "` both say the same thing"),
                        "remove one of the two");
    problem.notes.push_back({first->key_where, Cat("`", WordOf(spec), "` is here")});
    problem.edits = {{context.Shown(WordOf(spec)), ""}};
  }
  static std::string OtherPath(const KeySpec& spec) {
    return Cat(spec.path.substr(0, spec.path.size() - WordOf(spec).size()), spec.or_key);
  }

  static bool IsContainer(const KeySpec& spec, const YamlNode& value) {
    if (spec.type == KeyType::kListOfMaps) return value.is_sequence();
    return value.is_map() && (spec.type == KeyType::kMap || spec.type == KeyType::kNamedMaps);
  }

  // Sets `kind` to the kind of the map, which decides its keys: as written, or as meant by a word for it, or the
  // default. False if the map needs a kind and has none or a wrong one.
  bool ReadKind(YamlNode& node, const KeyContext& context, std::string* kind) {
    const KeySpec* spec = FindKey(context.table_path, "kind", "");
    if (spec == nullptr) return true;
    *kind = spec->default_text;
    for (YamlEntry& entry : node.entries) {
      if (entry.key != "kind" || !entry.value.is_scalar()) continue;
      // Told here and not with the other keys: they need it.
      const GoneValue* gone = FindGoneValue(spec->path, entry.value.text);
      if (!CheckChoice(*spec, entry.value, {"", context.Shown("kind"), entry.key_where}))
        damaged_.emplace(spec->path), told_kinds_.insert(&entry.value);
      *kind = entry.value.text;
      if (gone != nullptr) MoveGoneKeys(node, context);
    }
    const std::vector<std::string> choices = ChoicesOf(*spec);
    return std::find(choices.begin(), choices.end(), *kind) != choices.end();
  }

  // The value of a key that is gone, as its key of now takes it.
  static YamlNode MovedValue(const GoneKey& gone, const YamlNode& value) {
    const std::string text = absl::StrReplaceAll(std::string(gone.form), {{"$", FlowText(value)}});
    YamlNode moved = ParseValue(text).value_or(YamlNode());
    Relocate(moved, value.where);
    return moved;
  }

  // The kind of the map is gone, which is told last: what is gone with it goes where it belongs, without a word of its
  // own.
  void MoveGoneKeys(YamlNode& node, const KeyContext& context) {
    std::vector<Diagnostic> problems = problems_.as_found();
    std::vector<Edit>& edits = problems.back().edits;
    for (YamlEntry& entry : node.entries) {
      const GoneKey* gone = FindGoneKey(context.table_path, entry.key);
      if (gone == nullptr || gone->now.empty() || node.Find(gone->now) != nullptr) continue;
      edits.push_back({context.Shown(entry.key), ""});
      entry.key = gone->now;
      entry.value = MovedValue(*gone, entry.value);
      edits.push_back({context.Shown(entry.key), FlowText(entry.value)});
    }
    problems_.Replace(std::move(problems));
  }

  // Reports an unknown key. Returns the known key that is close to it, or that has its value now, which the entry then
  // has in its form; or an empty string. None of `there`, the keys beside it in its file, is close.
  std::string AddUnknownKey(YamlEntry& entry, const std::set<std::string>& there, const KeyContext& context,
                            const std::string& kind) {
    if (++unknown_keys_ > kMostUnknownKeys) return "";
    std::vector<std::string> known;
    const std::vector<std::string> other_kinds = KindsWith(context.table_path, entry.key);  // those that have this key
    for (const KeySpec* spec : KeysOf(context.table_path)) {
      if (spec->kind.empty() || spec->kind == kind) known.emplace_back(WordOf(*spec));
    }
    // Four kinds of help, the most specific one last: the known keys, a similar key, a kind that has the key, and that
    // earlier versions had it.
    const std::string message = Cat("unknown key ", Quoted(entry.key), context.shown_path.empty() ? "" : " in `",
                                    context.shown_path, context.shown_path.empty() ? "" : "`");
    std::string help = Cat("the keys here are ", absl::StrJoin(known, ", "));
    const GoneKey* gone = FindGoneKey(context.table_path, entry.key);
    const bool moves = gone && !gone->now.empty() && !there.contains(std::string(gone->now)) &&
                       FindKey(context.table_path, gone->now, kind) != nullptr;
    std::string near = gone || !other_kinds.empty() ? "" : NearKey(entry.key, known);
    if (there.contains(near)) {
      help = Cat("`", near, "` is there already; ", help);
      near.clear();
    }
    if (!near.empty()) help = Cat("did you mean `", near, "`?");
    const std::optional<SectionOfKind> section = SectionOfKindAt(context.table_path);
    bool of_source = false;
    if (context.table_path == "data" && FindKey("data", "sources", kind) != nullptr) {
      for (const KeySpec* spec : KeysOf("data.sources[]")) of_source = of_source || WordOf(*spec) == entry.key;
    }
    if (of_source) {
      help = Cat("put it in `sources`, in the entry that it is for: sources: [{", entry.key, ": ",
                 FlowText(entry.value), "}]");
    } else if (!other_kinds.empty()) {
      help = Cat("`", entry.key, "` exists only for ", other_kinds.size() > 1 ? "kinds " : "kind ",
                 absl::StrJoin(other_kinds, " and "), ", but the kind here is ", section ? section->kind : kind);
      // Elsewhere the path of a data set is that of its ids.
      if (context.table_path == "data" && entry.key == "path")
        help +=
            Cat("; ids of Megatron-LM (PATH.bin and PATH.idx) are data: {kind: sources, sources: [{kind: tokens, "
                "path: ",
                FlowText(entry.value), "}]}");
    }
    if (gone && !of_source) help = gone->help;
    Diagnostic& problem = problems_.Error(DiagnosticKind::kUnknownKey, entry.key_where, message, std::move(help));
    const std::string path = context.Shown(entry.key);
    problem.restates = !near.empty() || moves;
    if (!near.empty()) {
      problem.edits = {{path, ""}, {context.Shown(near), FlowText(entry.value)}};
    } else if (moves && !of_source) {
      entry.value = MovedValue(*gone, entry.value);
      problem.edits = {{path, ""}, {context.Shown(gone->now), FlowText(entry.value)}};
      return std::string(gone->now);
    } else if (!of_source && (gone || !other_kinds.empty())) {
      problem.edits = {{path, ""}};
    }
    return near;
  }

  // A missing value has no location: point at its key.
  Location LocationOf(const YamlNode& value, const KeyContext& context) const {
    return value.is_null() ? context.where : value.where;
  }

  void AddWrongType(const YamlNode& value, const KeyContext& context, std::string_view expected, std::string help = "",
                    std::vector<Edit> edits = {}) {
    problems_
        .Error(DiagnosticKind::kWrongType, LocationOf(value, context),
               Cat("`", context.shown_path, "` must be ", expected, ", found ", Describe(value)), std::move(help))
        .edits = std::move(edits);
  }

  void CheckSection(YamlNode& value, const KeyContext& context) {
    if (value.is_map()) return CheckMap(value, context);
    AddWrongType(value, context, "a map", value.is_null() ? "write its keys on the next lines, indented" : "");
  }

  void CheckNamedMaps(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    if (!value.is_map()) return AddWrongType(value, context, "a map of names");
    // A recipe needs a module, but not a model: an extended file may define it.
    if (value.entries.empty() && spec.need == Need::kRequired) {
      problems_.Error(DiagnosticKind::kMissingKey, context.where, Cat("`", context.shown_path, "` is empty"),
                      Cat("add at least one: ", spec.help));
      damaged_.emplace(spec.path);
    }
    for (YamlEntry& entry : value.entries) {
      CheckName(entry);
      CheckSection(entry.value, {context.table_path, context.Shown(entry.key), entry.key_where});
    }
  }

  // Names become parts of parameter names, file names and group names. recipe_schema.cc has the same rule.
  void CheckName(const YamlEntry& entry) {
    bool good = !absl::ascii_isdigit(entry.key[0]) && entry.key.size() <= 64;
    for (char c : entry.key) good = good && (absl::ascii_isalnum(c) || c == '_');
    if (good) return;
    problems_.Error(DiagnosticKind::kBadName, entry.key_where, Cat(Quoted(entry.key), " is not a valid name"),
                    "use at most 64 letters, digits and `_`, and do not start with a digit");
  }

  void CheckListOfMaps(YamlNode& value, const KeyContext& context) {
    if (!value.is_sequence()) return AddWrongType(value, context, "a list of maps");
    for (size_t i = 0; i < value.items.size(); ++i) {
      CheckSection(value.items[i], {context.table_path, Cat(context.shown_path, "[", i, "]"), value.items[i].where});
    }
  }

  // A text stands for a list of one text.
  void CheckStrings(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    if (value.is_scalar()) return CheckString(spec, value, context);
    if (!value.is_sequence()) return AddWrongType(value, context, "a text or a list of texts");
    if (value.items.empty()) {
      problems_.Error(DiagnosticKind::kWrongType, value.where, Cat("`", context.shown_path, "` is an empty list"),
                      "add at least one text");
    }
    for (size_t i = 0; i < value.items.size(); ++i) {
      YamlNode& item = value.items[i];
      CheckString(spec, item, {context.table_path, context.shown_path, item.where, static_cast<int>(i)});
    }
  }

  void CheckLintLevels(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    if (!value.is_map()) return AddWrongType(value, context, "a map of lints, such as {PW0407: off}");
    for (YamlEntry& entry : value.entries) {
      CheckLint(entry);
      const KeyContext level = {"", context.Shown(entry.key), entry.key_where};
      if (!entry.value.is_scalar()) {
        AddWrongType(entry.value, level, "error, warn or off");
      } else {
        CheckChoice(spec, entry.value, level);
      }
    }
  }

  // A key of `lints`. Three mistakes have messages of their own: a number that does not exist, the number of an error,
  // and the name of a lint instead of its number.
  void CheckLint(const YamlEntry& entry) {
    const std::optional<DiagnosticKind> kind = FindKind(entry.key);
    if (kind && IsLint(*kind) && entry.key == KindNumber(*kind)) return;
    std::vector<std::string> lints;
    for (DiagnosticKind lint : AllKinds()) {
      if (IsLint(lint)) lints.emplace_back(KindNumber(lint));
    }
    std::string message = Cat("there is no diagnostic ", Quoted(entry.key));
    std::string help = NearNameHelp(entry.key, lints, "`plan explain` lists all diagnostics and marks the lints");
    if (kind) {
      message = Cat(KindNumber(*kind), " ", KindName(*kind), " is not a lint: it is always an error");
      help = "remove it, and correct the recipe where the error is reported";
    }
    if (kind && IsLint(*kind)) {
      message = Cat("`lints` must name lints by number, found ", Quoted(entry.key));
      help = Cat("write ", KindNumber(*kind));
    }
    problems_.Error(DiagnosticKind::kNotALint, entry.key_where, std::move(message), std::move(help));
  }

  void CheckString(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    std::string text;
    ScalarProblem problem;
    if (!ReadString(value, &text, &problem)) return AddScalarProblem(spec, value, context, problem);
    if (!spec.choices.empty()) CheckChoice(spec, value, context);
  }

  // A value whose meaning is clear is mended, so that it is checked with the others.
  void AddScalarProblem(const KeySpec& spec, YamlNode& value, const KeyContext& context, ScalarProblem problem) {
    const bool is_size = spec.path == "batch.sequence_length" || spec.path.starts_with("models.");
    if (is_size && value.is_scalar() && absl::AsciiStrToLower(value.text).ends_with('k')) {
      problem.instead = RewrittenNumber(value.text, /*integer=*/true, /*k_is_1024=*/true);
      if (!problem.instead.empty()) problem.help = Cat("write ", problem.instead);
    }
    Diagnostic& told = problems_.Error(
        problem.kind, LocationOf(value, context),
        Cat("`", context.shown_path, "` must be ", problem.expected, ", found ", Describe(value)), problem.help);
    if (problem.instead.empty()) return;
    told.edits = {{context.EditPath(), problem.instead}};
    told.restates = true;
    value.quoted = problem.instead.starts_with('"');
    if (!value.quoted) value.text = problem.instead;
  }

  static bool IsNumber(const YamlNode& node, double* value) { return ReadNumber(node, value, nullptr); }
  static bool IsInteger(const YamlNode& node, double* value) {
    int64_t integer = 0;
    if (!ReadInteger(node, &integer, nullptr)) return false;
    *value = static_cast<double>(integer);
    return true;
  }

  // `read`: reads one of the two numbers; false if it has the wrong type.
  void CheckPair(const KeySpec& spec, YamlNode& value, const KeyContext& context, std::string_view expected,
                 bool (*read)(const YamlNode&, double*)) {
    double number = 0;
    // First the types of both numbers, reported once for the pair; then the range of each number.
    bool good = value.is_sequence() && value.items.size() == 2;
    for (const YamlNode& item : value.items) good = good && read(item, &number);
    if (!good)
      return AddWrongType(value, context, expected,
                          spec.default_text.empty() ? "" : Cat("write ", WordOf(spec), ": ", spec.default_text));
    for (const YamlNode& item : value.items) {
      read(item, &number);
      CheckRange(spec, number, item, context);
    }
  }

  void CheckPairs(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    constexpr std::string_view expected = "a list of [rows, columns]";
    double number = 0;
    const auto is_number = [&](const YamlNode& item) { return IsInteger(item, &number); };
    if (!value.is_sequence() || absl::c_all_of(value.items, is_number))
      return AddWrongType(value, context, expected, "write a pair for each grid: [[32, 32]]");
    for (size_t i = 0; i < value.items.size(); ++i) {
      YamlNode& item = value.items[i];
      CheckPair(spec, item, {context.table_path, Cat(context.shown_path, "[", i, "]"), item.where}, "[rows, columns]",
                &KeyChecker::IsInteger);
    }
  }

  void CheckIntegers(const KeySpec& spec, const YamlNode& value, const KeyContext& context) {
    double number = 0;
    bool good = value.is_sequence() && !value.items.empty();
    for (const YamlNode& item : value.items) good = good && IsInteger(item, &number);
    if (!good) return AddWrongType(value, context, "a list of integers");
    for (const YamlNode& item : value.items) {
      IsInteger(item, &number);
      CheckRange(spec, number, item, context);
    }
  }

  bool CheckRange(const KeySpec& spec, double number, const YamlNode& value, const KeyContext& context) {
    if (spec.range.Holds(number)) return true;
    Diagnostic& problem = problems_.Error(
        DiagnosticKind::kOutOfRange, value.where,
        Cat("`", context.shown_path, "` must be ", BrokenEnd(spec.range, number), ", found ", Printable(value.text)),
        Cat("the range is ", RangeText(spec.range), "; ", WordOf(spec), ": ", spec.help));
    // Elsewhere -1 says that a value follows from others, or has no limit.
    if (value.text == "-1" && spec.need == Need::kOptional && context.item < 0) {
      problem.help = Cat("remove it for the default; ", WordOf(spec), ": ", spec.help);
      problem.edits = {{context.EditPath(), ""}};
      return false;
    }
    if (const std::optional<double> bound = NearestInside(spec.range, number); bound && spec.type == KeyType::kInteger)
      problem.edits = {{context.EditPath(), Cat(static_cast<int64_t>(*bound))}};
    return false;
  }

  // Type and range of a single value. True if it is valid.
  bool CheckScalar(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    ScalarProblem problem;
    std::string text;
    int64_t integer = 0;
    double number = 0;
    bool truth = false, good = false;
    // A wrong choice may look like a number. "must be one of ..." is then better than "must be text".
    if (spec.type == KeyType::kChoice && value.is_scalar()) return CheckChoice(spec, value, context);
    switch (spec.type) {
      case KeyType::kInteger:
        good = ReadInteger(value, &integer, &problem);
        number = static_cast<double>(integer);
        break;
      case KeyType::kNumber: good = ReadNumber(value, &number, &problem); break;
      case KeyType::kBool: good = ReadBool(value, &truth, &problem); break;
      default: good = ReadString(value, &text, &problem); break;
    }
    if (spec.path == "models.<name>.pattern" && value.is_sequence()) {
      AddWrongType(value, context, "text", "write one letter for each layer, in quotes: \"M-M*\"");
      return false;
    }
    if (!good) {
      AddScalarProblem(spec, value, context, problem);
      return false;
    }
    return (spec.type != KeyType::kInteger && spec.type != KeyType::kNumber) ||
           CheckRange(spec, number, value, context);
  }

  void CheckWordOrCount(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    double number = 0;
    if (IsInteger(value, &number)) {
      CheckRange(spec, number, value, context);
      return;
    }
    const std::vector<std::string> words = ChoicesOf(spec);
    if (value.is_scalar() && std::find(words.begin(), words.end(), value.text) != words.end()) return;
    const std::string expected = Cat("one of ", absl::StrJoin(words, ", "), ", or an integer");
    if (!value.is_scalar()) return AddWrongType(value, context, expected);
    const std::string meant = ChoiceFor(spec, value.text, words);
    Diagnostic& problem =
        problems_.Error(DiagnosticKind::kUnknownChoice, LocationOf(value, context),
                        Cat("`", context.shown_path, "` must be ", expected, ", found ", Quoted(value.text)),
                        ChoiceHelp(spec, value.text, meant));
    if (meant.empty()) return;
    problem.edits = {{context.EditPath(), meant}};
    problem.restates = IsSameChoice(spec, value.text, meant);
  }

  // A word whose choice is clear is mended.
  bool CheckChoice(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
    if (told_kinds_.erase(&value) > 0) return false;
    const std::vector<std::string> choices = ChoicesOf(spec);
    for (const std::string& choice : choices) {
      if (choice == value.text) return true;
    }
    const GoneValue* gone = FindGoneValue(spec.path, value.text);
    const std::string meant = gone ? std::string(gone->now) : ChoiceFor(spec, value.text, choices);
    Diagnostic& problem =
        problems_.Error(DiagnosticKind::kUnknownChoice, value.where,
                        Cat("`", context.shown_path, "` must be ", choices.size() > 1 ? "one of " : "",
                            absl::StrJoin(choices, ", "), ", found ", Quoted(value.text)),
                        gone ? std::string(gone->help) : ChoiceHelp(spec, value.text, meant));
    if (meant.empty()) return false;
    problem.edits = {{context.EditPath(), meant}};
    problem.restates = gone != nullptr || IsSameChoice(spec, value.text, meant);
    value.text = meant;
    value.quoted = false;
    return false;
  }

  const std::set<std::string, std::less<>>& told_;
  Diagnostics& problems_;
  std::set<std::string, std::less<>> damaged_;
  std::set<const YamlNode*> told_kinds_;  // wrong kinds that are told
  size_t unknown_keys_ = 0;
};

void KeyChecker::CheckValue(const KeySpec& spec, YamlNode& value, const KeyContext& context) {
  MendShape(spec.path, &spec, value, context.EditPath(), problems_);
  switch (spec.type) {
    case KeyType::kMap: return CheckSection(value, context);
    case KeyType::kNamedMaps: return CheckNamedMaps(spec, value, context);
    case KeyType::kListOfMaps: return CheckListOfMaps(value, context);
    case KeyType::kStrings: return CheckStrings(spec, value, context);
    case KeyType::kNumberPair:
      return CheckPair(spec, value, context, "a pair of numbers, such as [0.9, 0.95]", &KeyChecker::IsNumber);
    case KeyType::kIntegerPairs: return CheckPairs(spec, value, context);
    case KeyType::kIntegers: return CheckIntegers(spec, value, context);
    case KeyType::kWordOrCount: return CheckWordOrCount(spec, value, context);
    case KeyType::kLintLevels: return CheckLintLevels(spec, value, context);
    default: break;
  }
  CheckScalar(spec, value, context);
}

}  // namespace

bool IsValidValue(const KeySpec& spec, const YamlNode& value) {
  Diagnostics problems;
  YamlNode copy = value;
  KeyChecker(NothingTold(), problems).CheckValue(spec, copy, {InnerPath(spec), std::string(spec.path), value.where});
  return problems.empty();
}

std::optional<YamlNode> MendedValue(const KeySpec& spec, const YamlNode& value) {
  Diagnostics problems;
  YamlNode copy = value;
  KeyChecker(NothingTold(), problems).CheckValue(spec, copy, {InnerPath(spec), std::string(spec.path), value.where});
  if (!IsValidValue(spec, copy)) return std::nullopt;
  return copy;
}

std::set<std::string, std::less<>> CheckKeys(YamlNode& recipe, const std::set<std::string, std::less<>>& told,
                                             Diagnostics& problems) {
  KeyChecker checker(told, problems);
  checker.CheckMap(recipe, {"", "", recipe.where});
  return checker.Finish(recipe.where);
}

}  // namespace planwright
