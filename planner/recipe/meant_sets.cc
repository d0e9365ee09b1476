#include "planner/recipe/meant_sets.h"

#include <algorithm>
#include <utility>

#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

bool IsKeyOfSet(const YamlEntry& entry) { return FindKey("evaluation.sets[]", entry.key, "") != nullptr; }

bool IsKeyOfEvaluation(const YamlEntry& entry) { return FindKey("evaluation", entry.key, "") != nullptr; }

// A set by its name, where no key can be.
bool IsNamedSet(const YamlEntry& entry) {
  const std::vector<YamlEntry>& keys = entry.value.entries;
  return !IsKeyOfSet(entry) && !IsKeyOfEvaluation(entry) && entry.value.is_map() && !keys.empty() &&
         std::all_of(keys.begin(), keys.end(), IsKeyOfSet);
}

YamlNode SetOf(const YamlEntry& named) {
  YamlNode set = named.value;
  if (set.Find("name") != nullptr) return set;
  YamlNode name;
  name.kind = YamlNode::Kind::kScalar;
  name.where = named.key_where;
  name.text = named.key;
  set.entries.insert(set.entries.begin(), {"name", named.key_where, std::move(name)});
  return set;
}

YamlNode EmptyList(const Location& where) {
  YamlNode list;
  list.kind = YamlNode::Kind::kSequence;
  list.where = where;
  return list;
}

}  // namespace

std::optional<SetsBesideKeys> SetsInEvaluation(const YamlNode& evaluation) {
  if (evaluation.Find("sets") != nullptr) return std::nullopt;
  SetsBesideKeys found;
  YamlNode one;  // the keys of a set that stand here by themselves
  one.kind = YamlNode::Kind::kMap;
  for (const YamlEntry& entry : evaluation.entries) {
    const bool by_name = IsNamedSet(entry);
    if (!by_name && (IsKeyOfEvaluation(entry) || !IsKeyOfSet(entry))) continue;
    if (found.keys.empty()) found.where = entry.key_where, found.by_name = by_name, found.sets = EmptyList(found.where);
    found.keys.push_back(entry.key);
    if (by_name) {
      found.sets.items.push_back(SetOf(entry));
    } else {
      one.entries.push_back(entry);
    }
  }
  if (found.keys.empty()) return std::nullopt;
  one.where = found.where;
  if (!one.entries.empty())
    found.sets.items.insert(found.sets.items.begin(), SetOf({"held_out", found.where, std::move(one)}));
  return found;
}

std::optional<YamlNode> SetsOfMap(const YamlNode& sets) {
  const auto is_map = [](const YamlEntry& entry) { return entry.value.is_map(); };
  if (!sets.is_map() || sets.entries.empty() || !std::all_of(sets.entries.begin(), sets.entries.end(), is_map))
    return std::nullopt;
  YamlNode list = EmptyList(sets.where);
  for (const YamlEntry& entry : sets.entries) list.items.push_back(SetOf(entry));
  return list;
}

std::optional<YamlNode> SetsOfNamedItems(const YamlNode& sets) {
  std::optional<YamlNode> list;
  for (size_t i = 0; i < sets.items.size(); ++i) {
    const YamlNode& item = sets.items[i];
    if (!item.is_map() || item.entries.size() != 1 || !IsNamedSet(item.entries[0])) continue;
    if (!list) list = sets;
    list->items[i] = SetOf(item.entries[0]);
  }
  return list;
}

}  // namespace planwright
