#include "planner/recipe/mend_tree.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/diagnostics/near_name.h"
#include "planner/diagnostics/text.h"
#include "planner/diagnostics/utf8.h"
#include "planner/recipe/key_checks.h"
#include "planner/recipe/mend_words.h"
#include "planner/recipe/other_devices.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

// A section that is often written as one value, and what the value stands for: $ is the value.
struct ShortSection {
  std::string_view path, meant;
  bool is_number = true;  // such a value
};
constexpr ShortSection kShortSections[] = {
    {"precision", "{params: $}", false},
    {"budget.learning_rate", "{peak: $}"},
    {"budget.weight_decay", "{start: $, end: $}"},
    {"checkpoint", "{every_steps: $}"},
    {"log", "{every_steps: $}"},
    {"initialize", "{from: $}", false},
    {"models.<name>.mlp", "{ffn: $}"},
    {"models.<name>.projector", "{hidden: $}"},
};

class Shapes {
 public:
  explicit Shapes(Diagnostics& problems) : problems_(problems) {}

  // `table_path`, `path`: of the map, in the table of keys and in the recipe.
  void CheckMap(YamlNode& map, const std::string& table_path, const std::string& path) {
    const std::string kind = KindOf(map, table_path);
    for (YamlEntry& entry : map.entries) {
      const KeySpec* spec = FindKey(table_path, entry.key, kind);
      if (spec != nullptr) CheckValue(*spec, entry.value, InsidePath(path, entry.key));
    }
    if (table_path == "cluster") CheckDevice(map);
  }

 private:
  void CheckValue(const KeySpec& spec, YamlNode& value, const std::string& path) {
    switch (spec.type) {
      case KeyType::kMap:
        MendSection(spec, value, path);
        if (value.is_map()) CheckMap(value, InnerPath(spec), path);
        break;
      case KeyType::kNamedMaps:
        MendNames(value, path);
        for (YamlEntry& named : value.entries) {
          if (named.value.is_map()) CheckMap(named.value, InnerPath(spec), InsidePath(path, named.key));
        }
        break;
      case KeyType::kListOfMaps:
        MendList(value, path);
        for (size_t i = 0; i < value.items.size(); ++i) {
          if (value.items[i].is_map()) CheckMap(value.items[i], InnerPath(spec), Cat(path, "[", i, "]"));
        }
        break;
      default: break;
    }
  }

  void Tell(const YamlNode& value, const std::string& path, const char* expected, std::string help, YamlNode mended) {
    problems_
        .Error(DiagnosticKind::kWrongType, value.where,
               Cat("`", path, "` must be ", expected, ", found ", Describe(value)), std::move(help))
        .edits = {{path, FlowText(mended)}};
  }

  // A list of one map, or one value.
  void MendSection(const KeySpec& spec, YamlNode& value, const std::string& path) {
    if (value.is_sequence() && value.items.size() == 1 && value.items[0].is_map()) {
      YamlNode mended = value.items[0];
      Tell(value, path, "a map", Cat("remove the `- `: `", path, "` is one map, and its keys are on this level"),
           mended);
      value = std::move(mended);
      return;
    }
    if (!value.is_scalar()) return;
    for (const ShortSection& section : kShortSections) {
      const bool number =
          !value.text.empty() && std::string_view("0123456789.-+").find(value.text[0]) != std::string::npos;
      if (spec.path != section.path || number != section.is_number) continue;
      std::string meant(section.meant);
      for (size_t at; (at = meant.find('$')) != std::string::npos;) meant.replace(at, 1, FlowText(value));
      Diagnostics ignored;
      std::optional<YamlNode> mended = ParseYaml(meant, {}, ignored);
      if (!mended) return;
      Tell(value, path, "a map", Cat("write ", WordOf(spec), ": ", meant), *mended);
      ApplyEdits(std::vector<Edit>{{"value", meant}}, Holder(value));
      value = Take();
      return;
    }
  }

  // Modules as a list of maps, each with its name.
  void MendNames(YamlNode& value, const std::string& path) {
    const auto named = [](const YamlNode& item) {
      const YamlEntry* name = item.is_map() ? item.Find("name") : nullptr;
      return name != nullptr && name->value.is_scalar() && !name->value.text.empty();
    };
    if (value.items.empty() || !std::all_of(value.items.begin(), value.items.end(), named)) return;
    YamlNode mended;
    mended.kind = YamlNode::Kind::kMap;
    mended.where = value.where;
    for (const YamlNode& item : value.items) {
      const YamlNode& name = item.Find("name")->value;
      YamlNode inner = item;
      std::erase_if(inner.entries, [](const YamlEntry& entry) { return entry.key == "name"; });
      mended.entries.push_back({name.text, name.where, std::move(inner)});
    }
    const std::string first = Printable(mended.entries[0].key);
    Tell(value, path, "a map of names",
         Cat("write `", first, ":` in place of `- name: ", first, "`, and so for each: the names are keys of `", path,
             "`"),
         mended);
    value = std::move(mended);
  }

  void MendList(YamlNode& value, const std::string& path) {
    if (!value.is_map() || value.entries.empty()) return;
    YamlNode mended;
    mended.kind = YamlNode::Kind::kSequence;
    mended.where = value.where;
    mended.items = {value};
    Tell(value, path, "a list of maps", Cat("write `- ` before its first key: `", path, "` is a list, here of one"),
         mended);
    value = std::move(mended);
  }

  void CheckDevice(YamlNode& cluster) {
    const YamlEntry* gpu = cluster.Find("gpu");
    const std::string figures = gpu != nullptr ? FiguresOfDevice(gpu->value.text) : "";
    if (figures.empty()) return;
    const Location where = gpu->value.where;
    const bool runs = !gpu->value.text.starts_with("mi");
    problems_
        .Error(DiagnosticKind::kUnknownChoice, where,
               Cat("`cluster.gpu` ", gpu->value.text, " is known by its data sheet only",
                   runs ? "" : ", and ranks do not run on it"),
               Cat("write gpu: other, and device: ", figures, " beside it; correct `network` to that of your nodes"))
        .edits = {{"cluster.gpu", "other"}, {"cluster.device", figures}};
    const std::vector<Edit> edits = {{"gpu", "other"}, {"device", figures}};
    ApplyEdits(std::span(edits).first(cluster.Find("device") != nullptr ? 1 : 2), cluster);
  }

  // A map with the value in it, so that an edit of it keeps its location.
  YamlNode& Holder(const YamlNode& value) {
    held_ = {};
    held_.kind = YamlNode::Kind::kMap;
    held_.entries.push_back({"value", value.where, value});
    return held_;
  }
  YamlNode Take() { return std::move(held_.entries[0].value); }

  Diagnostics& problems_;
  YamlNode held_;
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

void MendTree(YamlNode& recipe, Diagnostics& problems) {
  if (!recipe.is_map()) return;
  Shapes(problems).CheckMap(recipe, "", "");
  CheckNames(recipe, "modules", "module", "model", problems);
  CheckNames(recipe, "models", "model", "kind", problems);
  MendWords(recipe, problems);
}

}  // namespace planwright
