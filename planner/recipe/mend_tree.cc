#include "planner/recipe/mend_tree.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/mend_shapes.h"
#include "planner/recipe/mend_words.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

using Paths = std::set<std::string, std::less<>>;

constexpr int kMostMends = 4;  // of one value

class Shapes {
 public:
  Shapes(Diagnostics& problems, Paths& damaged) : problems_(problems), damaged_(damaged) {}

  // `table_path`, `path`: of the map, in the table of keys and in the recipe.
  void CheckMap(YamlNode& map, const std::string& table_path, const std::string& path) {
    const std::string kind = KindOf(map, table_path);
    MendSectionNames(map, table_path, path, kind);
    for (YamlEntry& entry : map.entries) {
      const KeySpec* spec = FindKey(table_path, entry.key, kind);
      if (spec != nullptr) CheckValue(*spec, entry.value, InsidePath(path, entry.key));
    }
  }

 private:
  // `model: {a: {...}}` for `models`.
  static bool IsNearNames(const KeySpec& spec, const YamlEntry& entry) {
    const auto is_map = [](const YamlEntry& inner) { return inner.value.is_map(); };
    return spec.type == KeyType::kNamedMaps && NearName(entry.key, {std::string(WordOf(spec))}) &&
           std::all_of(entry.value.entries.begin(), entry.value.entries.end(), is_map);
  }

  // A section under another name: most of what it has are keys of one section that is not there.
  void MendSectionNames(YamlNode& map, const std::string& table_path, const std::string& path,
                        const std::string& kind) {
    if (map.entries.size() > kMostUnknownKeys) return;
    for (YamlEntry& entry : map.entries) {
      if (!entry.value.is_map() || FindKey(table_path, entry.key, kind) != nullptr) continue;
      std::string meant;
      for (const KeySpec* spec : KeysOf(table_path)) {
        if ((!spec->kind.empty() && spec->kind != kind) || map.Find(WordOf(*spec)) != nullptr) continue;
        if (IsNearNames(*spec, entry)) {
          meant = WordOf(*spec);
          break;
        }
        if (spec->type != KeyType::kMap) continue;
        const auto known =
            std::count_if(entry.value.entries.begin(), entry.value.entries.end(), [&](const auto& inner) {
              return FindKey(spec->path, inner.key, KindOf(entry.value, spec->path)) != nullptr;
            });
        if (known < 2 || known * 2 <= static_cast<int64_t>(entry.value.entries.size())) continue;
        meant = meant.empty() ? std::string(WordOf(*spec)) : "";
        if (meant.empty()) break;  // two of them
      }
      if (meant.empty()) continue;
      Diagnostic& problem =
          problems_.Error(DiagnosticKind::kUnknownKey, entry.key_where,
                          Cat("unknown key ", Quoted(entry.key), path.empty() ? "" : Cat(" in `", path, "`")),
                          Cat("did you mean `", meant, "`?", NearName(entry.key, {meant}) ? "" : " It has these keys"));
      problem.edits = {{InsidePath(path, entry.key), ""}, {InsidePath(path, meant), FlowText(entry.value)}};
      problem.restates = true;
      entry.key = meant;
    }
  }

  // A value that is mended once may have another slip in it: `modules: [{model: lm}]` is a map of names, and then the
  // keys of one.
  void Mend(std::string_view where, const KeySpec* spec, YamlNode& value, const std::string& path) {
    for (int i = 0; i < kMostMends && MendShape(where, spec, value, path, problems_, &damaged_); ++i) {
    }
  }

  void CheckValue(const KeySpec& spec, YamlNode& value, const std::string& path) {
    if (spec.type != KeyType::kMap && spec.type != KeyType::kNamedMaps && spec.type != KeyType::kListOfMaps) return;
    Mend(spec.path, &spec, value, path);
    const std::string inner = InnerPath(spec);
    if (spec.type == KeyType::kMap) {
      if (value.is_map()) CheckMap(value, inner, path);
      return;
    }
    for (YamlEntry& named : value.entries) CheckOne(named.value, inner, InsidePath(path, named.key));
    for (size_t i = 0; i < value.items.size(); ++i) CheckOne(value.items[i], inner, Cat(path, "[", i, "]"));
  }

  // A map by its name, or an item.
  void CheckOne(YamlNode& value, const std::string& table_path, const std::string& path) {
    Mend(table_path, nullptr, value, path);
    if (value.is_map()) CheckMap(value, table_path, path);
  }

  Diagnostics& problems_;
  Paths& damaged_;
};

// The paths of all scalars and lists inside a map.
void AddLeaves(const YamlNode& node, const std::string& path, std::vector<TreePlace>& leaves) {
  for (const YamlEntry& entry : node.entries) {
    const std::string inner = InsidePath(path, entry.key);
    if (entry.value.is_map()) {
      AddLeaves(entry.value, inner, leaves);
    } else {
      leaves.push_back({inner, &entry.value});
    }
  }
}

// An override whose module or model does not exist makes one, without what every one needs. It is meant for another.
void CheckNames(YamlNode& recipe, const std::string& section, const char* what, const char* needed,
                Diagnostics& problems) {
  const YamlNode* named = NodeAt(recipe, section);
  if (named == nullptr || !named->is_map()) return;
  std::vector<YamlEntry> made;
  std::vector<std::string> names;
  for (const YamlEntry& entry : named->entries) {
    const bool by_override = entry.key_where.file && *entry.key_where.file == kCommandLine;
    if (by_override && entry.value.is_map() && entry.value.Find(needed) == nullptr) {
      made.push_back(entry);
    } else {
      names.push_back(entry.key);
    }
  }
  if (names.empty() || names.size() > kMostUnknownKeys) return;  // of so many names none is near
  for (const YamlEntry& entry : made) {
    std::vector<TreePlace> leaves;
    AddLeaves(entry.value, "", leaves);
    const std::string near = NearName(entry.key, names).value_or(""), path = InsidePath(section, entry.key);
    std::vector<Edit> edits = {{path, ""}};
    std::string help = Cat("the ", section, " are ", absl::StrJoin(names, ", "));
    for (const TreePlace& leaf : leaves) {
      if (near.empty()) break;
      const std::string meant = Cat(section, ".", near, ".", leaf.path), text = FlowText(*leaf.node);
      edits.push_back({meant, text});
      help = Cat("did you mean `", meant, "=", text, "`?");
      PutValue(meant, *leaf.node, recipe);
    }
    problems
        .Error(DiagnosticKind::kUnknownReference, entry.key_where, Cat("there is no ", what, " ", Quoted(entry.key)),
               std::move(help))
        .edits = near.empty() ? std::vector<Edit>() : edits;
    ApplyEdits(std::span(edits).first(1), recipe);
  }
}

}  // namespace

MendedTree MendTree(YamlNode& recipe, Diagnostics& problems) {
  MendedTree mended;
  if (!recipe.is_map()) return mended;
  Shapes(problems, mended.damaged).CheckMap(recipe, "", "");
  CheckNames(recipe, "modules", "module", "model", problems);
  CheckNames(recipe, "models", "model", "kind", problems);
  mended.told = MendWords(recipe, problems);
  return mended;
}

}  // namespace planwright
