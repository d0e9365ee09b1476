#include "planner/recipe/tree_edits.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "planner/base/text/text.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

// One step of a path: a key, or an item of a list.
struct Step {
  std::string key;
  size_t item = 0;
  bool is_item = false;
};

// "bridges[0].token" -> bridges, item 0, token
std::vector<Step> StepsOf(const std::string& path) {
  std::vector<Step> steps;
  for (size_t at = 0; at < path.size();) {
    if (path[at] == '[') {
      Step step = {.is_item = true};
      const size_t end = std::min(path.find(']', at), path.size());
      std::from_chars(path.data() + at + 1, path.data() + end, step.item);
      steps.push_back(step);
      at = end + 1;
    } else {
      const size_t begin = at + (path[at] == '.' ? 1 : 0), end = std::min(path.find_first_of(".[", begin), path.size());
      steps.push_back({.key = path.substr(begin, end - begin)});
      at = std::max(end, begin);
    }
  }
  return steps;
}

YamlNode* Find(YamlNode& map, const std::string& key) {
  for (YamlEntry& entry : map.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

// The value of one step; null if it is not there.
YamlNode* Child(YamlNode& node, const Step& step) {
  if (!step.is_item) return Find(node, step.key);
  return step.item < node.items.size() ? &node.items[step.item] : nullptr;
}

// Puts the comments of a key that is gone above `node`.
void AddAbove(const YamlComments& removed, YamlNode& node) {
  YamlComments comments = node.comments ? *node.comments : YamlComments();
  comments.blank |= removed.blank;
  comments.above.insert(comments.above.begin(), removed.above.begin(), removed.above.end());
  node.comments = std::make_shared<const YamlComments>(std::move(comments));
}

void AddToEnd(const YamlComments& removed, YamlNode& block) {
  YamlStyle style = block.style ? *block.style : YamlStyle();
  style.tail.above.insert(style.tail.above.begin(), removed.above.begin(), removed.above.end());
  block.style = std::make_shared<const YamlStyle>(std::move(style));
}

// Comments of keys that are gone.
struct Orphans {
  YamlComments comments;

  void Add(const YamlNode& removed) {
    if (removed.comments) {
      const YamlComments& lost = *removed.comments;
      comments.blank |= comments.above.empty() && lost.blank;
      comments.above.insert(comments.above.end(), lost.above.begin(), lost.above.end());
      if (!lost.beside.empty()) comments.above.push_back(lost.beside);
    }
    AddInside(removed);
  }
  void AddInside(const YamlNode& removed) {
    for (const YamlNode& item : removed.items) Add(item);
    for (const YamlEntry& entry : removed.entries) Add(entry.value);
    if (!removed.style) return;
    const std::vector<std::string>& tail = removed.style->tail.above;
    comments.above.insert(comments.above.end(), tail.begin(), tail.end());
  }
};

// Whether the path is one of another program: its first step is no key, or it is in a model or a module and no key here
// is called so.
bool IsOfAnother(const std::vector<Step>& path) {
  if (path.empty()) return false;
  const bool deep = path.size() > 2 && !path.back().is_item;
  return FindKey("", path[0].key, "") == nullptr || (deep && KeysCalled(path.back().key).empty());
}

// A section of another program is gone with its last key.
void Remove(YamlNode& tree, std::vector<Step> steps, Orphans& orphans) {
  const std::vector<Step> outer(steps.begin(), steps.end() - 1);
  const Step last = steps.back();
  steps.pop_back();
  YamlNode* node = &tree;
  for (const Step& step : steps) {
    node = Child(*node, step);
    if (node == nullptr) return;
    node->MarkChanged();
  }
  if (const YamlNode* gone = Child(*node, last)) orphans.Add(*gone);
  std::erase_if(node->entries, [&](const YamlEntry& entry) { return !last.is_item && entry.key == last.key; });
  if (last.is_item && last.item < node->items.size())
    node->items.erase(node->items.begin() + static_cast<std::ptrdiff_t>(last.item));
  if (IsOfAnother(outer) && node->is_map() && node->entries.empty()) Remove(tree, outer, orphans);
}

// The value at the end of the path, made if it is missing; null if there can be none. `made`: gets whether it was.
YamlNode* Reach(YamlNode& tree, const std::vector<Step>& steps, bool* made = nullptr) {
  YamlNode* node = &tree;
  for (const Step& step : steps) {
    YamlNode* inner = Child(*node, step);
    node->MarkChanged();
    if (inner == nullptr) {
      if (step.is_item || (!node->is_map() && !node->is_null())) return nullptr;
      if (node->is_null()) node->style = nullptr;
      node->kind = YamlNode::Kind::kMap;
      node->entries.push_back({step.key, node->where, {}});
      inner = &node->entries.back().value;
      inner->where = node->where;
      if (made != nullptr) *made = true;
    }
    node = inner;
  }
  return node;
}

// Finds the first value for which `is` says true, given the location of its key, too. The path is made on the way back:
// most values are on none.
template <typename Is>
bool FindPlace(const YamlNode& node, const Location& key, const Is& is, TreePlace& found) {
  if (is(node, key)) {
    found.node = &node;
    return true;
  }
  const auto inside = [&](const std::string& step) {
    const bool item = found.path.empty() || found.path[0] == '[';
    found.path = Cat(step, item ? "" : ".", found.path);
    return true;
  };
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (FindPlace(node.items[i], {}, is, found)) return inside(Cat("[", i, "]"));
  }
  for (const YamlEntry& entry : node.entries) {
    if (FindPlace(entry.value, entry.key_where, is, found)) return inside(entry.key);
  }
  return false;
}

bool SamePlace(const Location& a, const Location& b) {
  return a.line == b.line && a.column == b.column && a.file && b.file && *a.file == *b.file;
}

}  // namespace

void Relocate(YamlNode& node, const Location& where) {
  node.where = where;
  for (YamlNode& item : node.items) Relocate(item, where);
  for (YamlEntry& entry : node.entries) {
    entry.key_where = where;
    Relocate(entry.value, where);
  }
}

std::string InsidePath(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : Cat(path, ".", key);
}

// A map begins where its first key does, and that one is meant: maps come last.
std::optional<TreePlace> PlaceAt(const YamlNode& tree, const Location& where) {
  if (!where.known()) return std::nullopt;
  enum class Of { kValue, kKey, kMap };
  for (const Of of : {Of::kValue, Of::kKey, Of::kMap}) {
    const auto is = [&](const YamlNode& node, const Location& key) {
      return (of == Of::kKey ? SamePlace(key, where) : SamePlace(node.where, where)) &&
             (of != Of::kValue || !node.is_map()) && &node != &tree;
    };
    TreePlace found;
    if (FindPlace(tree, {}, is, found)) return found;
  }
  return std::nullopt;
}

const YamlNode* NodeAt(const YamlNode& tree, const std::string& path) {
  const YamlNode* node = &tree;
  for (const Step& step : StepsOf(path)) {
    node = Child(const_cast<YamlNode&>(*node), step);
    if (node == nullptr) return nullptr;
  }
  return node;
}

bool PutValue(const std::string& path, YamlNode value, YamlNode& tree) {
  YamlNode* place = Reach(tree, StepsOf(path));
  if (place != nullptr) place->Replace(std::move(value));
  return place != nullptr;
}

void ApplyEdits(std::span<const Edit> edits, YamlNode& tree) {
  Orphans orphans;
  for (const Edit& edit : edits) {
    const std::vector<Step> steps = StepsOf(edit.path);
    if (steps.empty()) continue;
    if (edit.value.empty()) {
      Remove(tree, steps, orphans);
      continue;
    }
    std::optional<YamlNode> value = ParseValue(edit.value);
    bool made = false;
    YamlNode* place = value ? Reach(tree, steps, &made) : nullptr;
    if (place == nullptr) continue;
    Relocate(*value, place->where);
    Orphans inside;
    inside.AddInside(*place);
    place->Replace(*std::move(value));
    if (!inside.comments.above.empty()) AddAbove(inside.comments, *place);
    if (made && !orphans.comments.above.empty()) {
      AddAbove(orphans.comments, *place);
      orphans = {};
    }
  }
  if (!orphans.comments.above.empty()) AddToEnd(orphans.comments, tree);
}

}  // namespace planwright
