#include "planner/recipe/recipe_reference.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/diagnostic.h"
#include "planner/diagnostics/text.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

constexpr char kHead[] = R"(# Recipe reference

Every key that a recipe may have, made by `plan explain --reference` from the table that the reader itself uses. `plan explain KEY` shows one of them,
`plan explain PW0203` a diagnostic ([all of them](diagnostics.md)).

- A recipe is YAML without anchors, aliases, tags and merge keys. An unknown key is an error.
- Recipes share with `extends`: the files it lists, beside this one or absolute, are laid over each other in order, and this file over them. Maps
  merge, lists and values replace, the later wins. A map that names another `kind` than the one below it replaces it whole. What is required may
  stand in any of the files.
- `<name>` is a name of your own: letters, digits and `_`. `[]` stands for each item of a list.
- On the command line `path.to.key=value` lies over the recipe: `plan validate r.yaml batch.global_samples=64`.
- Editors complete and check from [schemas/recipe.schema.json](../schemas/recipe.schema.json) where the first line of a recipe is
  `# yaml-language-server: $schema=../schemas/recipe.schema.json`.
)";

std::string Limits(const KeyRange& range) {
  using Bound = KeyRange::Bound;
  const bool both = range.low_bound == Bound::kInclusive && range.high_bound == Bound::kInclusive;
  if (both) return Cat(static_cast<int64_t>(range.low), " to ", static_cast<int64_t>(range.high));
  std::vector<std::string> parts;
  if (range.low_bound == Bound::kInclusive) parts.push_back(Cat("at least ", static_cast<int64_t>(range.low)));
  if (range.low_bound == Bound::kExclusive) parts.push_back(Cat("above ", static_cast<int64_t>(range.low)));
  if (range.high_bound == Bound::kInclusive) parts.push_back(Cat("at most ", static_cast<int64_t>(range.high)));
  if (range.high_bound == Bound::kExclusive) parts.push_back(Cat("below ", static_cast<int64_t>(range.high)));
  return absl::StrJoin(parts, ", ");
}

std::string ValueText(const KeySpec& key) {
  std::string type;
  switch (key.type) {
    case KeyType::kMap: return "a map";
    case KeyType::kNamedMaps: return "names, each a map";
    case KeyType::kListOfMaps: return "a list of maps";
    case KeyType::kString: return "text";
    case KeyType::kBool: return "true or false";
    case KeyType::kStrings:
      return key.choices.empty() ? "text, or a list of texts"
                                 : Cat(absl::StrJoin(ChoicesOf(key), ", "), "; one or a list");
    case KeyType::kChoice: return absl::StrJoin(ChoicesOf(key), ", ");
    case KeyType::kLintLevels: return Cat("numbers of lints, each ", absl::StrJoin(ChoicesOf(key), ", "));
    case KeyType::kInteger: type = "integer"; break;
    case KeyType::kNumber: type = "number"; break;
    case KeyType::kNumberPair: type = "two numbers"; break;
    case KeyType::kIntegers: type = "a list of integers"; break;
    case KeyType::kIntegerPairs: type = "a list of pairs of integers"; break;
  }
  const std::string limits = Limits(key.range);
  return limits.empty() ? type : Cat(type, ", ", limits);
}

std::string DefaultText(const KeySpec& key) {
  if (key.need == Need::kRequired) return "required";
  if (key.need == Need::kNotBuilt) return "not built yet";
  return key.default_text.empty() ? "" : Cat("`", key.default_text, "`");
}

bool IsUnder(const KeySpec& key, std::string_view path) {
  return key.path == path ||
         (key.path.starts_with(path) && (key.path[path.size()] == '.' || key.path[path.size()] == '['));
}

// The kind for which the key exists: its own, or that of a map around it. Maps of several kinds share no words for
// maps.
std::string_view KindOf(const KeySpec& key) {
  if (!key.kind.empty()) return key.kind;
  for (const KeySpec& around : RecipeKeys()) {
    if (around.type == KeyType::kMap && !around.kind.empty() && IsUnder(key, around.path)) return around.kind;
  }
  return "";
}

std::string Row(const KeySpec& key) {
  return Cat("| `", key.path, "` | ", absl::StrReplaceAll(ValueText(key), {{"|", "\\|"}}), " | ", DefaultText(key),
             " | ", absl::StrReplaceAll(std::string(key.help), {{"|", "\\|"}}), " |\n");
}

constexpr char kTableHead[] = "| key | value | default | meaning |\n|---|---|---|---|\n";

// The keys under one of the recipe's own, those of each kind apart.
std::string Section(const KeySpec& top) {
  std::vector<std::string_view> kinds = {""};
  for (const KeySpec& key : RecipeKeys()) {
    if (IsUnder(key, top.path) && std::find(kinds.begin(), kinds.end(), KindOf(key)) == kinds.end())
      kinds.push_back(KindOf(key));
  }
  std::string text = Cat("\n## ", top.path, "\n");
  for (std::string_view kind : kinds) {
    Append(text, kind.empty() ? "" : Cat("\nOf kind `", kind, "`:\n"), "\n", kTableHead);
    for (const KeySpec& key : RecipeKeys()) {
      if (IsUnder(key, top.path) && KindOf(key) == kind) text += Row(key);
    }
  }
  return text;
}

std::string LintTable() {
  std::string text = "\n| lint | warns of |\n|---|---|\n";
  for (DiagnosticKind kind : AllKinds()) {
    if (!IsLint(kind)) continue;
    const std::string anchor = absl::AsciiStrToLower(std::string(KindNumber(kind)));
    Append(text, "| [", KindNumber(kind), "](diagnostics.md#", anchor, ") | ", KindSummary(kind), " |\n");
  }
  return text;
}

// Whether `path` may name the table's key: names of the author's stand for <name>, [0] for [].
bool Names(std::string_view path, const KeySpec& key) {
  const std::vector<std::string> words = absl::StrSplit(std::string(path), '.'),
                                 known = absl::StrSplit(std::string(key.path), '.');
  if (words.size() != known.size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i].substr(0, words[i].find('[')), want = known[i].substr(0, known[i].find('['));
    if (want != "<name>" && want != word) return false;
  }
  return true;
}

std::string OneKey(const KeySpec& key) {
  const std::string kind = key.kind.empty() ? "" : Cat(" (of kind ", key.kind, ")");
  std::string text = Cat(key.path, kind, "\n    ", key.help, "\n    value: ", ValueText(key), "\n");
  const std::string fallback =
      key.need == Need::kOptional && !key.default_text.empty() ? Cat("default: ", key.default_text) : DefaultText(key);
  if (!fallback.empty()) Append(text, "    ", fallback, "\n");
  return text;
}

}  // namespace

std::string RecipeReference() {
  std::string text = kHead;
  Append(text, "\n## The file itself\n\n", kTableHead);
  std::string sections;
  for (const KeySpec* key : KeysOf("")) {
    const bool is_section =
        key->type == KeyType::kMap || key->type == KeyType::kNamedMaps || key->type == KeyType::kListOfMaps;
    if (is_section) {
      sections += Section(*key);
    } else {
      text += Row(*key);
    }
  }
  return Cat(text, sections, "\n## Lints\n\n`lints` changes these by number, such as `lints: {PW0407: off}`.\n",
             LintTable());
}

std::string ExplainKey(std::string_view path) {
  std::string text;
  for (const KeySpec& key : RecipeKeys()) {
    if (!Names(path, key)) continue;
    text += OneKey(key);
    for (const KeySpec& inner : RecipeKeys()) {
      if (inner.path != key.path && IsUnder(inner, key.path)) text += OneKey(inner);
    }
  }
  return text;
}

}  // namespace planwright
