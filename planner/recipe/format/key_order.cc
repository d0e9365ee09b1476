#include "planner/recipe/format/key_order.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

// Where in the table of keys a value stands.
struct TablePlace {
  std::string path;    // of the maps like this one: "modules.<name>.parallel"
  bool known = false;  // a map whose keys the table has
  bool named = false;  // a map from names that the author chose, whose maps are at `path`
};

// Of the value of a key in a map, and of the items of a list.
TablePlace Inside(const TablePlace& place, const YamlNode& map, const std::string& key) {
  if (place.named) return {place.path, true, false};
  if (!place.known) return {};
  const KeySpec* spec = FindKey(place.path, key, KindOf(map, place.path));
  if (spec == nullptr) return {};
  return {InnerPath(*spec), true, spec->type == KeyType::kNamedMaps};
}

// The indices of the entries in the order of the table.
std::vector<size_t> KeyOrder(const YamlNode& map, const TablePlace& place) {
  std::vector<size_t> order(map.entries.size());
  std::iota(order.begin(), order.end(), 0);
  if (!place.known || place.named) return order;
  const auto keys = KeysOf(place.path);
  const std::string kind = KindOf(map, place.path);
  std::vector<ptrdiff_t> rank;
  for (const YamlEntry& entry : map.entries) {
    const auto at = std::find(keys.begin(), keys.end(), FindKey(place.path, entry.key, kind));
    rank.push_back(at != keys.end() ? at - keys.begin() : rank.empty() ? -1 : rank.back());
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank[a] < rank[b]; });
  return order;
}

bool HasBlank(const YamlNode& node) { return node.comments && node.comments->blank; }

void SetBlank(bool blank, YamlNode& node) {
  YamlComments comments = node.comments ? *node.comments : YamlComments();
  comments.blank = blank;
  node.comments = std::make_shared<const YamlComments>(std::move(comments));
}

void Order(const TablePlace& place, YamlNode& node) {
  if (node.style && !node.style->lines.empty()) return;
  for (YamlNode& item : node.items) Order(place, item);
  for (YamlEntry& entry : node.entries) Order(Inside(place, node, entry.key), entry.value);
  const std::vector<size_t> order = KeyOrder(node, place);
  if (order.empty() || std::is_sorted(order.begin(), order.end())) return;
  // What was the first key has no blank line above it; the one that is it now needs none.
  YamlNode &first = node.entries[0].value, &now = node.entries[order[0]].value;
  if (const bool had = HasBlank(first), has = HasBlank(now); had != has) SetBlank(has, first), SetBlank(had, now);
  std::vector<YamlEntry> entries;
  for (const size_t i : order) entries.push_back(std::move(node.entries[i]));
  node.entries = std::move(entries);
}

}  // namespace

void OrderKeys(YamlNode& tree) { Order({"", true, false}, tree); }

}  // namespace planwright
