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
#include "planner/recipe/meant_sets.h"
#include "planner/recipe/mend_words.h"
#include "planner/recipe/other_devices.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_tree.h"
#include "planner/recipe/scalar.h"
#include "planner/recipe/tree_edits.h"

namespace planwright {
namespace {

// A section that is often written as one value, and what the value stands for: $ is the value.
struct ShortSection {
  std::string_view path, meant;
};
// A list of one as a text that is read at a glance.
constexpr size_t kShortText = 80;

constexpr ShortSection kShortSections[] = {
    {"precision", "{params: $}"},
    {"budget.learning_rate", "{peak: $}"},
    {"budget.weight_decay", "{start: $, end: $}"},
    {"checkpoint", "{every_steps: $}"},
    {"log", "{every_steps: $}"},
    {"initialize", "{from: $}"},
    {"data", "{kind: $}"},
    {"models.<name>.mlp", "{ffn: $}"},
    {"models.<name>.projector", "{hidden: $}"},
    {"modules.<name>.placement", "{first_rank: 0, ranks: $}"},
    {"modules.<name>.train", "{backbone: $}"},
};

class Shapes {
 public:
  explicit Shapes(Diagnostics& problems) : problems_(problems) {}

  // `table_path`, `path`: of the map, in the table of keys and in the recipe.
  void CheckMap(YamlNode& map, const std::string& table_path, const std::string& path) {
    const std::string kind = KindOf(map, table_path);
    MendSectionNames(map, table_path, path, kind);
    if (table_path == "evaluation") MendSets(map, path);
    if (table_path == "modules.<name>") MendPlacement(map, path);
    for (YamlEntry& entry : map.entries) {
      const KeySpec* spec = FindKey(table_path, entry.key, kind);
      if (spec != nullptr) CheckValue(*spec, entry.value, InsidePath(path, entry.key));
    }
    if (table_path == "cluster") CheckDevice(map);
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
      problems_
          .Error(DiagnosticKind::kUnknownKey, entry.key_where,
                 Cat("unknown key ", Quoted(entry.key), path.empty() ? "" : Cat(" in `", path, "`")),
                 Cat("did you mean `", meant, "`?", NearName(entry.key, {meant}) ? "" : " It has these keys"))
          .edits = {{InsidePath(path, entry.key), ""}, {InsidePath(path, meant), FlowText(entry.value)}};
      entry.key = meant;
    }
  }

  void MendSets(YamlNode& evaluation, const std::string& path) {
    const std::optional<SetsBesideKeys> found = SetsInEvaluation(evaluation);
    if (!found) return;
    const std::string text = FlowText(found->sets);
    std::vector<Edit> edits;
    for (const std::string& key : found->keys) edits.push_back({InsidePath(path, key), ""});
    edits.push_back({InsidePath(path, "sets"), text});
    problems_
        .Error(DiagnosticKind::kUnknownKey, found->where,
               Cat("unknown key ", Quoted(found->keys[0]), " in `", path, "`"),
               Cat(found->by_name ? "sets are a list, each with a name and a loss of its own"
                                  : "it is a key of a set, and each set has a loss of its own",
                   ": write sets: ", text))
        .edits = std::move(edits);
    std::erase_if(evaluation.entries, [&](const YamlEntry& entry) {
      return std::find(found->keys.begin(), found->keys.end(), entry.key) != found->keys.end();
    });
    evaluation.entries.push_back({"sets", found->where, found->sets});
  }

  // placement: {ranks: [4, 5]}, whose first rank is the same or not given.
  void MendRanksOfPlacement(YamlNode& placement, const std::string& path) {
    YamlNode *first = nullptr, *ranks = nullptr;
    for (YamlEntry& entry : placement.entries) {
      if (entry.key == "first_rank") first = &entry.value;
      if (entry.key == "ranks") ranks = &entry.value;
    }
    const std::optional<RanksInARow> range = ranks == nullptr ? std::nullopt : ReadRanksInARow(*ranks);
    int64_t given = 0;
    if (!range || (first != nullptr && (!ReadInteger(*first, &given, nullptr) || given != range->first))) return;
    const auto number = [&](int64_t value) {
      YamlNode node;
      node.kind = YamlNode::Kind::kScalar;
      node.where = ranks->where;
      node.text = Cat(value);
      return node;
    };
    const YamlNode count = number(range->count), begin = number(range->first);
    std::vector<Edit>& edits =
        Tell(*ranks, InsidePath(path, "ranks"), "a number of ranks",
             Cat("write placement: {first_rank: ", begin.text, ", ranks: ", count.text, "}"), count);
    *ranks = count;
    if (first != nullptr) return;
    edits.push_back({InsidePath(path, "first_rank"), begin.text});
    placement.entries.insert(placement.entries.begin(), {"first_rank", count.where, begin});
  }

  // `placement: 4` beside `ranks: 8`.
  void MendPlacement(YamlNode& module, const std::string& path) {
    YamlEntry* placement = nullptr;
    for (YamlEntry& entry : module.entries) {
      if (entry.key != "placement") continue;
      if (entry.value.is_map()) MendRanksOfPlacement(entry.value, InsidePath(path, "placement"));
      if (entry.value.is_scalar()) placement = &entry;
    }
    const YamlEntry* ranks = module.Find("ranks");
    int64_t first = 0, count = 0;
    if (placement == nullptr || ranks == nullptr || !ReadInteger(placement->value, &first, nullptr) ||
        !ReadInteger(ranks->value, &count, nullptr))
      return;
    // The same number twice is that of the ranks.
    const std::string meant = Cat("{first_rank: ", first == count ? 0 : first, ", ranks: ", count, "}");
    const KeySpec& spec = *FindKey("modules.<name>", "placement", "");
    if (!MendTo(spec, meant, placement->value, InsidePath(path, "placement"), {{InsidePath(path, "ranks"), ""}}))
      return;
    std::erase_if(module.entries, [](const YamlEntry& entry) { return entry.key == "ranks"; });
  }

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
        MendList(spec, value, path);
        for (size_t i = 0; i < value.items.size(); ++i) {
          if (value.items[i].is_map()) CheckMap(value.items[i], InnerPath(spec), Cat(path, "[", i, "]"));
        }
        break;
      case KeyType::kStrings:
        if (spec.path == "launch.slurm.options") MendOptions(value, path);
        break;
      default: break;
    }
  }

  // [--exclude=a,b] is a list of two texts: what does not begin with -- belongs to the option before it.
  void MendOptions(YamlNode& list, const std::string& path) {
    YamlNode mended = list;
    mended.items.clear();
    const YamlNode* cut = nullptr;  // the first part that is cut off
    for (const YamlNode& item : list.items) {
      const bool part = item.is_scalar() && !item.text.starts_with('-') && !mended.items.empty() &&
                        mended.items.back().text.find('=') != std::string::npos;
      if (!part) {
        mended.items.push_back(item);
        continue;
      }
      if (cut == nullptr) cut = &item;
      Append(mended.items.back().text, ",", item.text);
      mended.items.back().quoted = true;
    }
    if (cut == nullptr) return;
    const std::string text = FlowText(mended);
    problems_
        .Error(
            DiagnosticKind::kBadName, cut->where,
            Cat("`", path, "`: ", Quoted(cut->text), " is no option of sbatch: a comma in a list begins the next text"),
            Cat("write options with commas in quotes: options: ", text))
        .edits = {{path, text}};
    list = std::move(mended);
  }

  // Returns its edits.
  std::vector<Edit>& Tell(const YamlNode& value, const std::string& path, const char* expected, std::string help,
                          const YamlNode& mended) {
    Diagnostic& problem =
        problems_.Error(DiagnosticKind::kWrongType, value.where,
                        Cat("`", path, "` must be ", expected, ", found ", Describe(value)), std::move(help));
    problem.edits = {{path, FlowText(mended)}};
    return problem.edits;
  }

  // The map of a list of maps with different keys: [nodes: 4, gpu: none] is {nodes: 4, gpu: none}. Nothing: it is none.
  static std::optional<YamlNode> OneMap(const YamlNode& list) {
    if (!list.is_sequence() || list.items.empty()) return std::nullopt;
    YamlNode map;
    map.kind = YamlNode::Kind::kMap;
    map.where = list.where;
    for (const YamlNode& item : list.items) {
      if (!item.is_map()) return std::nullopt;
      for (const YamlEntry& entry : item.entries) {
        if (map.Find(entry.key) != nullptr) return std::nullopt;
        map.entries.push_back(entry);
      }
    }
    return map;
  }

  // [a: 1] and not `- a: 1`, as far as locations tell.
  static bool IsInBrackets(const YamlNode& list) {
    const Location &first = list.items[0].where, &last = list.items.back().where;
    return list.items.size() > 1 ? first.line == last.line : first.column == list.where.column + 1;
  }

  // A list of maps that are one map, or one value.
  void MendSection(const KeySpec& spec, YamlNode& value, const std::string& path) {
    if (spec.path == "modules.<name>.placement") MendRanks(spec, value, path);
    if (std::optional<YamlNode> mended = OneMap(value)) {
      const bool one = value.items.size() == 1;
      const std::string help = IsInBrackets(value)
                                   ? Cat("write braces in place of brackets: ", WordOf(spec), ": ", FlowText(*mended))
                               : one ? Cat("remove the `- `: `", path, "` is one map, and its keys are on this level")
                                     : Cat("remove each `- `: `", path, "` is one map, and these are its keys");
      Tell(value, path, "a map", help, *mended);
      value = *std::move(mended);
      return;
    }
    if (!value.is_scalar()) return;
    if (spec.path == "optimizer") {
      problems_
          .Error(DiagnosticKind::kWrongType, value.where, Cat("`optimizer` must be a map, found ", Describe(value)),
                 "remove it: the optimizer is always AdamW")
          .edits = {{path, ""}};
      value.kind = YamlNode::Kind::kMap;
      return;
    }
    for (const ShortSection& section : kShortSections) {
      if (spec.path != section.path) continue;
      std::string meant(section.meant);
      for (size_t at; (at = meant.find('$')) != std::string::npos;) meant.replace(at, 1, FlowText(value));
      MendTo(spec, meant, value, path);
      return;
    }
  }

  // Puts the section that is meant in the place of a value, if its values are good: `fp16` in it is mended to bf16.
  // `without`: edits that go with it. False: they are not good.
  bool MendTo(const KeySpec& spec, const std::string& meant, YamlNode& value, const std::string& path,
              const std::vector<Edit>& without = {}) {
    Diagnostics ignored;
    const std::optional<YamlNode> section = ParseYaml(meant, {}, ignored);
    std::optional<YamlNode> mended = section ? MendedValue(spec, *section) : std::nullopt;
    if (!mended) return false;
    const std::string text = FlowText(*mended);
    std::vector<Edit>& edits = Tell(value, path, "a map", Cat("write ", WordOf(spec), ": ", text), *mended);
    edits.insert(edits.end(), without.begin(), without.end());
    ApplyEdits(std::vector<Edit>{{"value", text}}, Holder(value));
    value = Take();
    return true;
  }

  // [0, 1, 2, 3] and 0-3 are the ranks from 0 on.
  void MendRanks(const KeySpec& spec, YamlNode& value, const std::string& path) {
    if (const std::optional<RanksInARow> range = ReadRanksInARow(value))
      MendTo(spec, Cat("{first_rank: ", range->first, ", ranks: ", range->count, "}"), value, path);
  }

  // The keys of one module where names must be: modules: {model: m, placement: {...}}
  void MendNameless(YamlNode& modules) {
    const auto of_module = [](const YamlEntry& entry) { return FindKey("modules.<name>", entry.key, "") != nullptr; };
    const YamlEntry* model = modules.Find("model");
    if (model == nullptr || !model->value.is_scalar()) return;
    if (!std::all_of(modules.entries.begin(), modules.entries.end(), of_module)) return;
    YamlNode named;
    named.kind = YamlNode::Kind::kMap;
    named.where = modules.where;
    named.entries.push_back({"language", modules.where, modules});
    const std::string text = FlowText(named);
    Tell(
        modules, "modules", "a map of names",
        text.size() <= kShortText ? Cat("write modules: ", text) : "write a name, such as `language:`, around its keys",
        named);
    modules = std::move(named);
  }

  // Modules as a list of maps, each with its name.
  void MendNames(YamlNode& value, const std::string& path) {
    if (path == "modules") MendNameless(value);
    const auto named = [](const YamlNode& item) {
      const YamlEntry* name = item.is_map() ? item.Find("name") : nullptr;
      return name != nullptr && name->value.is_scalar() && !name->value.text.empty();
    };
    if (value.items.empty() || !std::all_of(value.items.begin(), value.items.end(), named)) {
      const auto maps = [](const YamlNode& item) {
        return item.is_map() && item.entries.size() == 1 && item.entries[0].value.is_map();
      };
      std::optional<YamlNode> map = OneMap(value);
      if (!map || !std::all_of(value.items.begin(), value.items.end(), maps)) return;
      Tell(value, path, "a map of names",
           IsInBrackets(value) ? Cat("write braces in place of brackets: the names are keys of `", path, "`")
                               : Cat("remove each `- `: the names are keys of `", path, "`"),
           *map);
      value = *std::move(map);
      return;
    }
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

  // A bridge of two names, written in another way: {vision: language}, [vision, language], or one item for each key.
  static std::optional<YamlNode> OneBridge(const YamlNode& value) {
    YamlNode bridge;
    bridge.kind = YamlNode::Kind::kMap;
    bridge.where = value.where;
    const auto is_name = [](const YamlNode& node) { return node.is_scalar() && !node.text.empty(); };
    if (value.is_map() && value.entries.size() == 1 && is_name(value.entries[0].value) &&
        FindKey("bridges[]", value.entries[0].key, "") == nullptr) {
      const YamlEntry& entry = value.entries[0];
      YamlNode from = entry.value;
      from.text = entry.key;
      from.where = entry.key_where;
      bridge.entries = {{"from", entry.key_where, from}, {"to", entry.value.where, entry.value}};
      return bridge;
    }
    if (value.items.size() == 2 && is_name(value.items[0]) && is_name(value.items[1])) {
      bridge.entries = {{"from", value.items[0].where, value.items[0]}, {"to", value.items[1].where, value.items[1]}};
      return bridge;
    }
    if (value.items.size() < 2) return std::nullopt;
    return OneMap(value);  // two bridges have a key twice
  }

  void MendList(const KeySpec& spec, YamlNode& value, const std::string& path) {
    const auto tell = [&](const char* expected, YamlNode mended) {
      Tell(value, path, expected, Cat("write ", WordOf(spec), ": ", FlowText(mended)), mended);
      value = std::move(mended);
    };
    YamlNode mended;
    mended.kind = YamlNode::Kind::kSequence;
    mended.where = value.where;
    if (spec.path == "bridges") {
      if (std::optional<YamlNode> bridge = OneBridge(value)) {
        mended.items = {*std::move(bridge)};
        return tell("a list of maps", std::move(mended));
      }
    }
    if (spec.path == "evaluation.sets") {
      if (std::optional<YamlNode> sets = SetsOfNamedItems(value))
        return tell("a list of maps with the keys of a set", *std::move(sets));
      if (std::optional<YamlNode> sets = SetsOfMap(value)) return tell("a list of maps", *std::move(sets));
    }
    if (!value.is_map() || value.entries.empty()) return;
    mended.items = {value};
    const std::string text = FlowText(mended);
    const std::string help =
        text.size() <= kShortText ? Cat("write ", WordOf(spec), ": ", text) : "write `- ` before its first key";
    Tell(value, path, "a list of maps", Cat(help, ": `", path, "` is a list, here of one"), mended);
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

std::set<std::string, std::less<>> MendTree(YamlNode& recipe, Diagnostics& problems) {
  if (!recipe.is_map()) return {};
  Shapes(problems).CheckMap(recipe, "", "");
  CheckNames(recipe, "modules", "module", "model", problems);
  CheckNames(recipe, "models", "model", "kind", problems);
  return MendWords(recipe, problems);
}

}  // namespace planwright
