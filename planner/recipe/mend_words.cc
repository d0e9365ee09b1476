#include "planner/recipe/mend_words.h"

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/field_words.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/meant_words.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_reference.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/units.h"

namespace planwright {
namespace {

constexpr std::string_view kName = "<name>", kModel = "models.<name>";
constexpr std::string_view kOfOtherKind =
    "remove it: {whose} is `{key}` here, which exists only for kind {kinds}, but the kind here is {kind}";
constexpr std::string_view kTwo = "{whose} is `{key}` here: {value}{sum}; the recipe has {has}: keep one of the two";
constexpr std::string_view kNowhere = "{whose} is `{key}` here: write {last}: {value} there{; why}";

// An unknown key that is known elsewhere.
struct Word {
  std::string table_path, path, kind;  // of the map that has it; the kind of a section of a model is that of the model
  YamlEntry entry;
  std::string target;                // path in the table of keys; empty: there is no key for it
  const FieldWord* field = nullptr;  // null: a key of another level
};

std::string LastOf(const std::string& path) { return path.substr(path.rfind('.') + 1); }
std::string MapOf(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

class Words {
 public:
  explicit Words(YamlNode& recipe) : recipe_(recipe) {}

  // Finds the words of a map and of the maps in it. `model`: the kind of the model that the map is a section of.
  void Find(const YamlNode& map, const std::string& table_path, const std::string& path,
            const std::string& model = "") {
    const std::string kind = model.empty() ? KindOf(map, table_path) : model;
    for (const YamlEntry& entry : map.entries) {
      const KeySpec* spec = FindKey(table_path, entry.key, kind);
      if (spec == nullptr) {
        FindUnknown(entry, table_path, path, kind);
        continue;
      }
      const std::string inner = InnerPath(*spec), shown = InsidePath(path, entry.key);
      if (spec->type == KeyType::kMap) Find(entry.value, inner, shown, table_path == kModel ? kind : model);
      if (spec->type == KeyType::kNamedMaps) {
        for (const YamlEntry& named : entry.value.entries) Find(named.value, inner, InsidePath(shown, named.key));
      }
      if (spec->type == KeyType::kListOfMaps) {
        for (size_t i = 0; i < entry.value.items.size(); ++i)
          Find(entry.value.items[i], inner, Cat(shown, "[", i, "]"));
      }
    }
  }

  // Sizes of steps first: iterations are counted with global_samples.
  void Mend(Diagnostics& problems) {
    std::stable_partition(found_.begin(), found_.end(),
                          [](const Word& word) { return !word.field || word.field->unit != FieldUnit::Steps; });
    for (const Word& word : found_) {
      const YamlNode* there = NodeAt(recipe_, word.target);
      if (there != nullptr && !IsOver(word, *there)) given_.insert(word.target);
    }
    for (const Word& word : found_) Mend(word, problems);
  }

  // Keys that the recipe has by a word whose value is not known: that they are missing is told with it.
  std::set<std::string, std::less<>> Told() { return std::move(told_); }

 private:
  void FindUnknown(const YamlEntry& entry, const std::string& table_path, const std::string& path,
                   const std::string& kind) {
    if (++unknown_keys_ > kMostUnknownKeys || FindGoneKey(table_path, entry.key) != nullptr) return;
    std::vector<std::string> here, deeper, elsewhere;
    // A key of another kind, unless other programs call a key of this one so.
    const FieldWord* field = FindFieldWord(InsidePath(path, entry.key));
    if (!KindsWith(table_path, entry.key).empty() && (field == nullptr || field->keys.empty())) return;
    for (const KeySpec* spec : KeysOf(table_path)) {
      if (spec->kind.empty() || spec->kind == kind) here.emplace_back(WordOf(*spec));
    }
    for (const KeySpec* spec : KeysCalled(entry.key)) {
      if (spec->path.find("[]") != std::string_view::npos) continue;
      if (!kind.empty() && spec->path.starts_with(table_path) && !IsOfKind(*spec, kind)) continue;
      std::vector<std::string>& list =
          !table_path.empty() && spec->path.starts_with(table_path + ".") ? deeper : elsewhere;
      if (list.empty() || list.back() != spec->path) list.emplace_back(spec->path);
    }
    Word word = {table_path, path, kind, entry, "", nullptr};
    if (deeper.size() == 1) {
      word.target = deeper[0];
    } else if (field != nullptr && IsMeant(*field, entry, path, elsewhere)) {
      word.field = field;
      const bool of_model = field->keys.starts_with("models.") && !table_path.starts_with(kModel);
      if (of_model) word.kind = KindFor(*field, path);
      word.target = TargetOf(*field, word.kind, table_path);
    } else if (elsewhere.size() == 1 && !NearName(entry.key, here) && IsValidAt(elsewhere[0], entry.value)) {
      word.target = elsewhere[0];
    } else {
      // A section of another program: what it says is told together. One whose name is near to one of ours is another
      // program's if all that it says is: `model: {flavor: 8B}`.
      if (entry.value.is_map() && (!NearName(entry.key, here) || HasOnlyWords(entry, path))) FindSection(entry, path);
      return;
    }
    found_.push_back(std::move(word));
  }

  // Whether the word of another program is meant, and no key of ours that is elsewhere, and no section with other
  // words.
  static bool IsMeant(const FieldWord& field, const YamlEntry& entry, const std::string& path,
                      const std::vector<std::string>& elsewhere) {
    if (entry.value.is_map()) return field.keys.empty() && !HasWords(entry.value, InsidePath(path, entry.key));
    if (!field.keys.empty() || elsewhere.size() != 1) return true;
    return !IsValidAt(elsewhere[0], entry.value);
  }

  // Whether a word of another program that is a key here is in the map at this path, all the way down.
  static bool HasWords(const YamlNode& map, const std::string& path) {
    return std::any_of(map.entries.begin(), map.entries.end(), [&](const YamlEntry& entry) {
      const std::string inside = InsidePath(path, entry.key);
      const FieldWord* field = FindFieldWord(inside);
      return entry.value.is_map() ? HasWords(entry.value, inside) : field != nullptr && !field->keys.empty();
    });
  }

  static bool IsValidAt(const std::string& target, const YamlNode& value) {
    const std::span<const KeySpec* const> specs = KeysCalled(LastOf(target));
    return std::any_of(specs.begin(), specs.end(), [&](const KeySpec* spec) {
      return spec->path == target &&
             (spec->type == KeyType::kMap ||
              (spec->type == KeyType::kString ? IsValidValue(*spec, value) : MendedValue(*spec, value).has_value()));
    });
  }

  // The kind of the model that a word is for: that of the model or module that it is in, or the only one; empty if
  // there are several.
  std::string KindFor(const FieldWord& field, const std::string& path) const {
    if (!field.keys.starts_with("models.")) return "";
    const YamlNode* models = NodeAt(recipe_, "models");
    const YamlNode* model = ModelOf(path);
    if (model == nullptr && models != nullptr && models->entries.size() == 1) model = &models->entries[0].value;
    return model != nullptr && model->is_map() ? KindOf(*model, "models.<name>") : "";
  }

  // The model that a path is in, or that of the module that it is in; null if it is in none.
  const YamlNode* ModelOf(const std::string& path) const {
    if (path.starts_with("models.")) return NodeAt(recipe_, path.substr(0, path.find('.', 7)));
    if (!path.starts_with("modules.")) return nullptr;
    const YamlNode* name = NodeAt(recipe_, path.substr(0, path.find('.', 8)) + ".model");
    return name != nullptr ? NodeAt(recipe_, InsidePath("models", name->text)) : nullptr;
  }

  // Whether maps of this kind have a key. Keys in a section of a model have no kind of their own: the section has.
  static bool IsOfKind(const KeySpec& spec, const std::string& kind) {
    if (!spec.section_of.empty()) return spec.section_of == kind;
    const std::string_view own = ConstantOf(spec);
    const size_t dot = own.find('.');
    const bool inside = spec.path.starts_with(kModel) && dot != std::string_view::npos;
    return inside ? FindKey(kModel, own.substr(0, dot), kind) != nullptr : spec.kind.empty() || spec.kind == kind;
  }

  // The key of a word in maps of this kind: the first of its keys that they have.
  static std::string TargetOf(const FieldWord& field, const std::string& kind, const std::string& table_path) {
    const std::vector<std::string> keys = KeysOfWord(field);
    if (keys.empty()) return "";
    for (const std::string& key : keys) {
      if (!kind.empty() || table_path.empty() || MapOf(key) != table_path) continue;
      return key;  // in this section, whose keys have no kind
    }
    for (const std::string& key : keys) {
      for (const KeySpec* spec : KeysCalled(LastOf(key))) {
        if (spec->path == key && (kind.empty() || !key.starts_with(kModel) || IsOfKind(*spec, kind))) return key;
      }
    }
    return keys.back();
  }

  // The words in the maps of an unknown section, all the way down, and the keys that one section alone has here.
  void FindSection(const YamlEntry& section, const std::string& path) {
    const std::string inside = InsidePath(path, section.key);
    const size_t before = found_.size();
    std::vector<Word> others;  // told one by one if something of the section is known
    for (const YamlEntry& entry : section.value.entries) {
      if (found_.size() == kMostUnknownKeys) return;
      const FieldWord* field = FindFieldWord(InsidePath(inside, entry.key));
      if (field != nullptr && IsMeant(*field, entry, inside, {})) {
        const std::string kind = KindFor(*field, inside);
        found_.push_back({"", inside, kind, entry, TargetOf(*field, kind, ""), field});
      } else if (entry.value.is_map()) {
        FindSection(entry, inside);
      } else if (const std::string only = OnlyKeyCalled(entry.key, /*of_kinds=*/false);
                 !only.empty() && only != entry.key && IsValidAt(only, entry.value)) {
        found_.push_back({"", inside, "", entry, only, nullptr});
      } else {
        others.push_back({"", inside, "", entry, "", nullptr});
      }
    }
    if (found_.size() > before) found_.insert(found_.end(), others.begin(), others.end());
  }

  static bool HasOnlyWords(const YamlEntry& section, const std::string& path) {
    return std::all_of(section.value.entries.begin(), section.value.entries.end(), [&](const YamlEntry& entry) {
      return !entry.value.is_map() && FindFieldWord(InsidePath(InsidePath(path, section.key), entry.key)) != nullptr;
    });
  }

  // The key that only models have of the role that a word is for; empty: it is for any.
  static std::string_view RoleKeyOf(const Word& word) {
    if (word.field == nullptr) return "";
    if (word.field->keys.find("<encoder>") != std::string_view::npos) return "projector";
    return word.field->keys.find("<language>") != std::string_view::npos ? "vocabulary" : "";
  }

  // The module ("modules.") or model whose models have a key of their own: that of the path, or the only one.
  std::string NameOfRole(const std::string& section, std::string_view own, const std::string& path) const {
    std::vector<std::string> names;
    const YamlNode* named = NodeAt(recipe_, section.substr(0, section.size() - 1));
    if (named == nullptr) return "";
    for (const YamlEntry& entry : named->entries) {
      const std::string inside = Cat(section, entry.key, ".");
      const YamlNode* model = section == "modules." ? ModelOf(inside) : &entry.value;
      if (model == nullptr || FindKey("models.<name>", own, KindOf(*model, "models.<name>")) == nullptr) continue;
      if (Cat(path, ".").starts_with(inside)) return entry.key;
      names.push_back(entry.key);
    }
    return names.size() == 1 ? names[0] : "";
  }

  // The path in the recipe of a key of the table, with the names that are meant; empty if they are not known.
  std::string Named(const std::string& target, const Word& word) const {
    // In the same item of a list.
    if (target.find("[]") != std::string::npos && MapOf(target) == word.table_path)
      return InsidePath(word.path, LastOf(target));
    const size_t at = target.find(kName);
    if (at == std::string::npos) return target;
    const std::string section = target.substr(0, at);  // "modules."
    std::string name;
    if (const std::string_view own = RoleKeyOf(word); !own.empty()) {
      name = NameOfRole(section, own, word.path);
    } else if (word.path.starts_with(section)) {
      name = word.path.substr(at, word.path.find('.', at) - at);
    } else if (section == "models." && word.path.starts_with("modules.")) {
      const std::string module = word.path.substr(0, word.path.find('.', 8));
      const YamlNode* model = NodeAt(recipe_, module + ".model");
      if (model != nullptr) name = model->text;
    } else if (const YamlNode* named = NodeAt(recipe_, section.substr(0, section.size() - 1));
               named != nullptr && named->entries.size() == 1) {
      name = named->entries[0].key;
    }
    return name.empty() ? "" : Cat(section, name, target.substr(at + kName.size()));
  }

  // The value under the key, as YAML; empty if it is not known.
  std::string Converted(const Word& word, const std::string& target) const {
    const YamlNode& value = word.entry.value;
    if (IsItem(word)) return ItemOf(word, target);
    return word.field == nullptr ? FlowText(value) : InUnit(word.field->unit, value, SpecOf(word), target, recipe_);
  }

  static bool IsItem(const Word& word) {
    return word.field != nullptr && RowOf(word.field->unit).value.starts_with("[{");
  }

  // The list with the item that a word is; empty if it is not known of which encoder.
  // `taken`: nor if the key does not take it.
  std::string ItemOf(const Word& word, const std::string& target, bool taken = true) const {
    const std::string encoder = NameOfRole("modules.", "projector", word.path);
    if (encoder.empty() || !word.entry.value.is_scalar()) return "";
    std::string list = absl::StrReplaceAll(std::string(RowOf(word.field->unit).value),
                                           {{"<encoder>", encoder}, {"$", FlowText(word.entry.value)}});
    const KeySpec* spec = SpecOf(word);
    if (taken && spec != nullptr && !IsTaken(*spec, ParseValue(list).value_or(YamlNode()))) return "";
    const YamlNode* there = NodeAt(recipe_, target);
    if (there == nullptr || !there->is_sequence() || there->items.empty()) return list;
    list.pop_back();
    return Cat(list, ", ", FlowText(*there).substr(1));
  }

  // Whether the key does not take the value, which is known to be of its unit.
  bool IsRefused(const Word& word, const std::string& value) const {
    if (word.field == nullptr || !value.empty() || !word.entry.value.is_scalar()) return false;
    const KeySpec* spec = SpecOf(word);
    if (ExpectedInUnit(word.field->unit, spec).empty() || word.field->unit == FieldUnit::Pattern) return false;
    if (IsItem(word)) return !ItemOf(word, word.target, /*taken=*/false).empty();
    // Of counts the factor may be what is not known.
    const bool counts = RowOf(word.field->unit).value.starts_with("$ ");
    return !counts || !IsValidValue(*spec, word.entry.value);
  }

  static const KeySpec* SpecOf(const Word& word) {
    for (const KeySpec* spec : KeysCalled(LastOf(word.target))) {
      if (spec->path == word.target && (word.kind.empty() || IsOfKind(*spec, word.kind))) return spec;
    }
    return nullptr;
  }

  // An evaluation has two keys, so that one word alone makes none: of mock data the other one is made, too.
  void AddEvaluation(std::string& target, std::string& value) const {
    if (target != "evaluation.every_samples" || value.empty() || NodeAt(recipe_, "evaluation") != nullptr) return;
    const YamlNode *kind = NodeAt(recipe_, "data.kind"), *batch = NodeAt(recipe_, "batch.global_samples");
    const std::optional<DataKind> known =
        DataKindFromName(kind == nullptr ? FindKey("data", "kind", "")->default_text : kind->text);
    const bool drawn = known && RowOf(*known).drawn;
    value = drawn && batch != nullptr ? Cat("{every_samples: ", value,
                                            ", sets: [{name: held_out, samples: ", FlowText(*batch), ", seed: 1}]}")
                                      : "";
    if (!value.empty()) target = "evaluation";
  }

  // A placement has two keys, so that `ranks` alone makes none. With several modules the first rank is not known: that
  // it is missing is told with the word. True: it is so.
  bool AddPlacement(const Word& word, std::string& target, std::string& value) {
    const std::string section = MapOf(target), first = InsidePath(section, "first_rank");
    if (value.empty() || !target.starts_with("modules.") || !target.ends_with(".placement.ranks")) return false;
    const YamlNode* placement = NodeAt(recipe_, section);
    const bool empty =
        placement == nullptr || placement->is_null() ||
        (placement->is_map() && placement->Find("first_rank") == nullptr && placement->Find("ranks") == nullptr);
    const bool moved = std::any_of(found_.begin(), found_.end(), [&](const Word& other) {
      return other.path == word.path && other.target.ends_with(".placement.first_rank");
    });
    if (!empty || moved) return false;
    const std::optional<RanksInARow> range = ReadRanksInARow(word.entry.value);
    if (!range && NodeAt(recipe_, "modules")->entries.size() > 1) {
      told_.insert(first);
      return true;
    }
    ApplyEdits(std::vector<Edit>{{section, ""}}, recipe_);
    target = section;
    value = range ? Cat("{first_rank: ", range->first, ", ranks: ", range->count, "}")
                  : Cat("{first_rank: 0, ranks: ", value, "}");
    return false;
  }

  static bool SameFile(const Location& a, const Location& b) { return a.file && b.file && *a.file == *b.file; }

  // Whether what is written at the place of the word wins over `there`: an override does, and the recipe itself (where
  // the merged root is) over the files that it extends.
  bool IsOver(const Word& word, const YamlNode& there) const {
    const Location& where = word.entry.key_where;
    if (where.file && *where.file == kCommandLine) return true;
    return there.where.file && *there.where.file != kCommandLine && !SameFile(where, there.where) &&
           SameFile(where, recipe_.where);
  }

  static std::string InMap(const Word& word) { return word.path.empty() ? "" : Cat(" in `", word.path, "`"); }

  // The kinds of the map of a word whose key is known, if the map has another one; empty: the key may stand there, or
  // the other kind is meant, as by a word for its data.
  std::vector<std::string> OtherKinds(const Word& word, std::string& kind) const {
    std::vector<std::string> kinds;
    if (word.field == nullptr || word.target.empty()) return {};
    if (word.target.starts_with(kModel)) {
      kind = word.kind;
      if (kind.empty() || !IsKind(kind)) return {};
      for (const std::string& other : ChoicesOf(*FindKey(kModel, "kind", ""))) {
        const auto has = [&](const KeySpec* spec) { return spec->path == word.target && IsOfKind(*spec, other); };
        const std::span<const KeySpec* const> specs = KeysCalled(LastOf(word.target));
        if (std::any_of(specs.begin(), specs.end(), has)) kinds.push_back(other);
      }
    } else {
      const std::string map = MapOf(word.target);
      const YamlNode* there = map.empty() ? nullptr : NodeAt(recipe_, map);
      if (there == nullptr) return {};
      kind = KindOf(*there, map);
      for (const KeySpec* spec : KeysOf(map)) {
        if (spec->path == word.target && spec->need == Need::kOptional) kinds.emplace_back(spec->kind);
      }
    }
    const bool fits = std::any_of(kinds.begin(), kinds.end(), [&](const auto& of) { return of.empty() || of == kind; });
    return fits ? std::vector<std::string>() : kinds;
  }

  static bool IsKind(const std::string& kind) {
    const std::vector<std::string> kinds = ChoicesOf(*FindKey(kModel, "kind", ""));
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }

  // `sample_packing` is data.packing, which mock data has not, and `rope_theta` a key of other models: the word is
  // removed.
  bool RemoveOfOtherKind(const Word& word, Diagnostics& problems) {
    std::string kind;
    const std::vector<std::string> kinds = OtherKinds(word, kind);
    if (kinds.empty()) return false;
    const std::string own = InsidePath(word.path, word.entry.key);
    problems
        .Error(DiagnosticKind::kUnknownKey, word.entry.key_where,
               Cat("unknown key ", Quoted(word.entry.key), InMap(word)),
               Saying(kOfOtherKind, *word.field,
                      {{"{key}", ShownKey(word)}, {"{kinds}", absl::StrJoin(kinds, " and ")}, {"{kind}", kind}}))
        .edits = {{own, ""}};
    ApplyEdits(std::vector<Edit>{{own, ""}}, recipe_);
    return true;
  }

  // The key in the recipe, or as the table has it.
  std::string ShownKey(const Word& word) const {
    const std::string named = Named(word.target, word);
    return named.empty() ? word.target : named;
  }

  void Mend(const Word& word, Diagnostics& problems) {
    if (RemoveOfOtherKind(word, problems)) return;
    const std::string own = InsidePath(word.path, word.entry.key);
    std::string target = Named(word.target, word), value = target.empty() ? "" : Converted(word, target);
    AddEvaluation(target, value);
    const bool first_rank_missing = AddPlacement(word, target, value);
    const YamlNode* there = target.empty() ? nullptr : NodeAt(recipe_, target);
    const std::string has = there != nullptr ? FlowText(*there) : "";
    const bool by_override = word.entry.key_where.file && *word.entry.key_where.file == kCommandLine;
    const bool pair = word.field != nullptr && RowOf(word.field->unit).value.starts_with('[');
    // What is said at the right place stays, unless it is of a file that the word's own is laid over.
    const bool open = there == nullptr || IsOver(word, *there) || (pair && !given_.contains(target));
    const bool put = !value.empty() && open;
    // Then nothing is said of the key: what is there is not what the word asks for.
    const bool refused = open && IsRefused(word, Shown(word, target, value));
    if (refused) there = nullptr;
    // Another file is no reason to remove the word from this one, even if that file wins.
    const bool other =
        there != nullptr && !by_override && there->where.file && !SameFile(there->where, word.entry.key_where);
    Diagnostic& problem = problems.Error(
        DiagnosticKind::kUnknownKey, word.entry.key_where, Cat("unknown key ", Quoted(word.entry.key), InMap(word)),
        Cat(Help(word, target, Shown(word, target, value), other ? nullptr : there, put || (other && !value.empty())),
            refused ? Found(word) : "",
            first_rank_missing ? " And `placement` needs `first_rank`: the first rank of the module" : ""));
    if (there != nullptr && !put && there->where.known())
      problem.notes.push_back({there->where, Cat(LastOf(target), " is given here")});
    if (put || there != nullptr || word.target.empty() || Follows(word)) problem.edits = {{own, ""}};
    if (put) problem.edits.push_back({target, value});
    problem.restates = put ? SaysTheSame(word, value) : !value.empty() && value == has;
    ApplyEdits(std::vector<Edit>{{own, ""}}, recipe_);
    if (!put && there == nullptr && !target.empty()) told_.insert(target);
    if (!put) return;
    YamlNode moved = word.entry.value;
    if (value != FlowText(moved)) {
      moved = ParseValue(value).value_or(moved);
      Relocate(moved, word.entry.value.where);
    }
    PutValue(target, std::move(moved), recipe_);
  }

  static std::string Found(const Word& word) {
    const bool counts = RowOf(word.field->unit).value.starts_with("$ ");
    return Cat("; ", counts ? Cat("expected ", ExpectedInUnit(word.field->unit, SpecOf(word)), ", ") : "", "found ",
               Describe(word.entry.value));
  }

  // The value that a help shows: of one whose module or model is not known, too.
  std::string Shown(const Word& word, const std::string& target, const std::string& value) const {
    return target.empty() && !word.target.empty() ? Converted(word, word.target) : value;
  }

  static bool Follows(const Word& word) { return word.field && word.field->unit == FieldUnit::Follows; }

  // Of choices the one that is meant may be another one: bf16 for fp16.
  static bool SaysTheSame(const Word& word, const std::string& value) {
    const KeySpec* spec = word.field == nullptr ? nullptr : SpecOf(word);
    const bool as_it_is = spec != nullptr && word.entry.value.is_scalar() && RowOf(word.field->unit).value == "$";
    return !as_it_is || spec->type != KeyType::kChoice || IsSameChoice(*spec, word.entry.value.text, value);
  }

  std::string Help(const Word& word, const std::string& target, const std::string& value, const YamlNode* there,
                   bool put) const {
    const std::string shown = target.empty() ? word.target : target, last = LastOf(shown);
    const bool same_map = MapOf(shown) == word.path;
    const bool by_override = word.entry.key_where.file && *word.entry.key_where.file == kCommandLine;
    // How to write it: as an override, beside the word, or in the section that has it.
    // An override leads to no item of a list: it has the whole list, and the help is for what stands in it.
    const bool assigns = by_override && shown.find('[') == std::string::npos;
    std::string write = assigns                            ? Cat("write ", shown, "=", value)
                        : same_map || MapOf(shown).empty() ? Cat("write ", last, ": ", value)
                        : MapOf(MapOf(shown)) == word.path && NodeAt(recipe_, MapOf(shown)) == nullptr
                            ? Cat("write ", LastOf(MapOf(shown)), ": {", last, ": ", value, "}")
                            : Cat("write ", last, ": ", value, " in `", MapOf(shown), "`");
    if (word.field == nullptr && word.target.empty()) return "remove it: no key here is known to say the same";
    if (word.field == nullptr) {
      const KeySpec* key = SpecOf(word);
      // A value that the key does not take is told where it stands.
      const bool taken = key == nullptr || value != FlowText(word.entry.value) || IsTaken(*key, word.entry.value);
      if (put) return Cat("did you mean `", shown, taken ? Cat(by_override ? "=" : ": ", value) : "", "`?");
      return Cat("it belongs to `", MapOf(shown), "`", there ? ", which has it: remove it here" : "");
    }
    // A number of layers is known where layers are a number, and then it is as any number.
    const bool number = word.field->unit == FieldUnit::Pattern && !value.empty() && !target.empty();
    const UnitRow& unit = RowOf(number ? FieldUnit::Same : word.field->unit);
    const KeySpec* spec = SpecOf(word);
    const bool section = MapOf(word.target) == shown;  // AddEvaluation
    // Of several modules or models, or of none, it is not known which. Layers are most often those of a language model.
    const bool nowhere = target.empty() && !value.empty() && !there && word.field->unit != FieldUnit::Pattern;
    const bool differs = there != nullptr && there->is_scalar() && !value.empty() && value != FlowText(*there);
    const std::string_view text = put       ? unit.put
                                  : differs ? kTwo
                                  : there   ? unit.there
                                  : nowhere ? kNowhere
                                            : unit.unknown;
    const std::string expected = ExpectedInUnit(word.field->unit, spec);
    const bool counts = unit.value.starts_with("$ ");
    return Saying(text, *word.field,
                  {{"{key}", shown},
                   {"{one}", section ? word.target : shown},
                   {"{near}", same_map ? last : shown},
                   {"{last}", last},
                   {"{write}", write},
                   {"{value}", value},
                   {"{this}", ThisOf(word)},
                   {"{text}", FlowText(word.entry.value)},
                   {"{has}", differs ? FlowText(*there) : ""},
                   {"{sum}", counts ? Cat(" (", SumOf(unit.value, word.entry.value), ")") : ""},
                   {"{values}", expected.empty() || counts ? "" : Cat(": ", expected)}});
  }

  // "4 x micro_samples x dp" of "$ x batch.micro_samples x dp"
  static std::string SumOf(std::string_view form, const YamlNode& value) {
    return absl::StrReplaceAll(std::string(form), {{"$", FlowText(value)}, {"batch.", ""}});
  }

  // A section of another program goes with its last key.
  std::string ThisOf(const Word& word) const {
    const YamlNode* map = NodeAt(recipe_, word.path);
    const bool last = map != nullptr && map->entries.size() == 1 && FindKey("", word.path, "") == nullptr;
    return last && !word.path.empty() && word.path.find('.') == std::string::npos ? Cat("`", word.path, "`") : "this";
  }

  YamlNode& recipe_;
  size_t unknown_keys_ = 0;
  std::vector<Word> found_;
  std::set<std::string> given_;  // keys that the recipe itself has
  std::set<std::string, std::less<>> told_;
};

}  // namespace

std::set<std::string, std::less<>> MendWords(YamlNode& recipe, Diagnostics& problems) {
  Words words(recipe);
  words.Find(recipe, "", "");
  words.Mend(problems);
  return words.Told();
}

}  // namespace planwright
