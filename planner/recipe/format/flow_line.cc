#include "planner/recipe/format/flow_line.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/text.h"

namespace planwright {

TablePlace Inside(const TablePlace& place, const YamlNode& map, const std::string& key) {
  if (place.named) return {place.path, true, false};
  if (!place.known) return {};
  const KeySpec* spec = FindKey(place.path, key, KindOf(map, place.path));
  if (spec == nullptr) return {};
  return {InnerPath(*spec), true, spec->type == KeyType::kNamedMaps};
}

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

std::string KeyText(const std::string& key) {
  const bool plain = std::all_of(key.begin(), key.end(),
                                 [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-'; }) &&
                     !key.starts_with('-');
  if (plain) return key;
  std::string quoted = "\"";
  for (const char c : key) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "\"";
}

std::string FlowLine(const YamlNode& node, const TablePlace& place, const SourceText& source) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "~";
    case YamlNode::Kind::kScalar: return source.Written(node);
    case YamlNode::Kind::kSequence:
      for (const YamlNode& item : node.items) parts.push_back(FlowLine(item, place, source));
      return Cat("[", absl::StrJoin(parts, ", "), "]");
    case YamlNode::Kind::kMap: break;
  }
  for (const size_t i : KeyOrder(node, place)) {
    const YamlEntry& entry = node.entries[i];
    parts.push_back(Cat(KeyText(entry.key), ": ", FlowLine(entry.value, Inside(place, node, entry.key), source)));
  }
  return Cat("{", absl::StrJoin(parts, ", "), "}");
}

}  // namespace planwright
