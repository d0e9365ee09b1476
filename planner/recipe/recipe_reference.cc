#include "planner/recipe/recipe_reference.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

constexpr char kHead[] = R"(# Recipe reference

All keys of a recipe. This page is made by `plan explain --reference` from the table of keys that the reader uses.
`plan explain KEY` shows one key, `plan explain PW0203` a diagnostic ([all diagnostics](diagnostics.md)).

- A recipe is YAML without anchors, aliases, tags and merge keys. An unknown key is an error.
- `extends` lists files that a recipe builds on; their paths are absolute or relative to the recipe. The files are
  merged in order, and then the recipe itself. Later ones win: maps merge key by key, lists and values replace. A map
  with another `kind` replaces the whole map before it. A required key may be in any of the files.
- `<name>` is a name that you choose: letters, digits and `_`. `[]` stands for each item of a list.
- `path.to.key=value` on the command line overrides the recipe: `plan validate r.yaml batch.global_samples=64`.
- Editors can complete and check keys with [schemas/recipe.schema.json](../schemas/recipe.schema.json). The first line
  of the recipe is then `# yaml-language-server: $schema=../schemas/recipe.schema.json`.
)";

// The "default" column.
std::string DefaultText(const KeySpec& key) {
  if (key.need == Need::kRequired) return key.or_key.empty() ? "required" : Cat("required, or `", key.or_key, "`");
  return key.default_text.empty() ? "" : Cat("`", key.default_text, "`");
}

// Whether the key is at `path` or below it: "batch.global_samples" is under "batch".
bool IsUnder(const KeySpec& key, std::string_view path) {
  return key.path == path ||
         (key.path.starts_with(path) && (key.path[path.size()] == '.' || key.path[path.size()] == '['));
}

// For which kind the key exists: its own, and those of the maps around it, the outermost first. "`radio_vit`", or
// "`sources`, in `data.sources[]` kind `tokens`". Empty: for all. (No two kinds have maps of the same name.)
std::string KindOfKey(const KeySpec& key) {
  std::string text;
  for (const KeySpec& around : RecipeKeys()) {
    const bool maps = around.type == KeyType::kMap || around.type == KeyType::kListOfMaps;
    const bool is_key = around.path == key.path && around.kind == key.kind;
    if (around.kind.empty() || !(is_key || (maps && around.path != key.path && IsUnder(key, around.path)))) continue;
    if (!key.section_of.empty() && around.kind != key.section_of) continue;
    const std::string_view parent = around.path.substr(0, around.path.rfind('.'));
    Append(text, text.empty() ? "" : Cat(", in `", parent, "` kind "), "`", around.kind, "`");
  }
  return text;
}

// One line of a table. Markdown needs `|` escaped inside cells.
std::string Row(const KeySpec& key) {
  return Cat("| `", key.path, "` | ", absl::StrReplaceAll(ValueText(key), {{"|", "\\|"}}), " | ", DefaultText(key),
             " | ", absl::StrReplaceAll(std::string(key.help), {{"|", "\\|"}}), " |\n");
}

constexpr char kTableHead[] = "| key | value | default | meaning |\n|---|---|---|---|\n";

// One section of the page: the keys under a top-level key, with one table for each kind.
std::string SectionText(const KeySpec& top) {
  std::vector<std::string> kinds = {""};
  for (const KeySpec& key : RecipeKeys()) {
    if (IsUnder(key, top.path) && std::find(kinds.begin(), kinds.end(), KindOfKey(key)) == kinds.end())
      kinds.push_back(KindOfKey(key));
  }
  std::string text = Cat("\n## ", top.path, "\n");
  for (const std::string& kind : kinds) {
    Append(text, kind.empty() ? "" : Cat("\nFor kind ", kind, ":\n"), "\n", kTableHead);
    for (const KeySpec& key : RecipeKeys()) {
      if (IsUnder(key, top.path) && KindOfKey(key) == kind) text += Row(key);
    }
  }
  return text;
}

// The links lead to the anchors of docs/diagnostics.md, which are lower-case numbers.
std::string LintTable() {
  std::string text = "\n| lint | meaning |\n|---|---|\n";
  for (DiagnosticKind kind : AllKinds()) {
    if (!IsLint(kind)) continue;
    const std::string anchor = absl::AsciiStrToLower(std::string(KindNumber(kind)));
    Append(text, "| [", KindNumber(kind), "](diagnostics.md#", anchor, ") | ", KindSummary(kind), " |\n");
  }
  return text;
}

// Whether `path` names the key of the path `key`: any word matches <name>, and [0] matches [].
bool PathMatches(std::string_view path, std::string_view key) {
  const std::vector<std::string> words = absl::StrSplit(std::string(path), '.'),
                                 known = absl::StrSplit(std::string(key), '.');
  if (words.size() != known.size()) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i].substr(0, words[i].find('[')), want = known[i].substr(0, known[i].find('['));
    if (want != "<name>" && want != word) return false;
  }
  return true;
}

// The text of one key for `plan explain`.
std::string OneKey(const KeySpec& key) {
  const std::string_view of = key.kind.empty() ? key.section_of : key.kind;
  const std::string kind = of.empty() ? "" : Cat(" (of kind ", of, ")");
  std::string text = Cat(key.path, kind, "\n    ", key.help, "\n    value: ", ValueText(key), "\n");
  const std::string fallback =
      key.need == Need::kOptional && !key.default_text.empty() ? Cat("default: ", key.default_text) : DefaultText(key);
  if (!fallback.empty()) Append(text, "    ", fallback, "\n");
  return text;
}

}  // namespace

std::string ValueText(const KeySpec& key) {
  std::string type;
  switch (key.type) {
    case KeyType::kMap: return "a map";
    case KeyType::kNamedMaps: return "a map from names to maps";
    case KeyType::kListOfMaps: return "a list of maps";
    case KeyType::kString: return "text";
    case KeyType::kBool: return "true or false";
    case KeyType::kStrings:
      return key.choices.empty() ? "text, or a list of texts"
                                 : Cat(absl::StrJoin(ChoicesOf(key), ", "), ": one word or a list");
    case KeyType::kChoice: return absl::StrJoin(ChoicesOf(key), ", ");
    case KeyType::kLintLevels: return Cat("a map from numbers of lints to ", absl::StrJoin(ChoicesOf(key), ", "));
    case KeyType::kInteger: type = "integer"; break;
    case KeyType::kNumber: type = "number"; break;
    case KeyType::kNumberPair: type = "two numbers"; break;
    case KeyType::kIntegers: type = "a list of integers"; break;
    case KeyType::kIntegerPairs: type = "a list of pairs of integers"; break;
    case KeyType::kWordOrCount: type = Cat(absl::StrJoin(ChoicesOf(key), ", "), ", or an integer"); break;
  }
  const std::string range = RangeText(key.range);
  return range.empty() ? type : Cat(type, ", ", range);
}

std::string RecipeReference() {
  std::string text = kHead;
  Append(text, "\n## The file itself\n\n", kTableHead);
  std::string sections;
  // Top-level keys that are not maps share the first table. Each of the others gets a section, after that table.
  for (const KeySpec* key : KeysOf("")) {
    const bool is_section =
        key->type == KeyType::kMap || key->type == KeyType::kNamedMaps || key->type == KeyType::kListOfMaps;
    if (is_section) {
      sections += SectionText(*key);
    } else {
      text += Row(*key);
    }
  }
  return Cat(text, sections, "\n## Lints\n\n`lints` sets their levels by number, such as `lints: {PW0407: off}`.\n",
             LintTable());
}

std::string ExplainKey(std::string_view path) {
  std::string text;
  for (const KeySpec& key : RecipeKeys()) {
    if (!PathMatches(path, key.path)) continue;
    text += OneKey(key);
    // A map stands with all keys inside it.
    for (const KeySpec& inner : RecipeKeys()) {
      const bool of_other_kind = !key.section_of.empty() && inner.section_of != key.section_of;
      if (inner.path != key.path && IsUnder(inner, key.path) && !of_other_kind) text += OneKey(inner);
    }
  }
  for (const GoneKey& gone : GoneKeys()) {
    if (PathMatches(path, gone.path)) Append(text, gone.path, " (gone)\n    ", gone.help, "\n");
  }
  for (const GoneValue& gone : GoneValues()) {
    if (PathMatches(path, gone.path)) Append(text, gone.path, ": ", gone.value, " (gone)\n    ", gone.help, "\n");
  }
  return text;
}

}  // namespace planwright
