#include "planner/recipe/shapes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_split.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/value_kinds.h"

namespace planwright {
namespace {

constexpr std::string_view kMore = "...", kUnknownPath = "?", kUnknownKeys = "-";

// "$ranks(kind)"
struct Capture {
  std::string_view name, kind;
};

std::optional<Capture> CaptureOf(std::string_view text) {
  if (!text.starts_with('$')) return std::nullopt;
  const size_t open = text.find('(');
  if (open == std::string_view::npos) return Capture{text.substr(1), ""};
  return Capture{text.substr(1, open - 1), text.substr(open + 1, text.size() - open - 2)};
}

// Binds a name; false if it has another value already.
bool Bind(std::string_view name, const YamlNode& value, Captures& captures) {
  const auto [at, is_new] = captures.try_emplace(std::string(name));
  if (is_new) at->second.values = {value};
  return is_new || FlowText(at->second.values[0]) == FlowText(value);
}

// Adds what one round of a repetition found.
void AddRound(const Captures& round, Captures& captures) {
  for (const auto& [name, found] : round) {
    Captured& all = captures[name];
    all.repeated = true;
    all.values.insert(all.values.end(), found.values.begin(), found.values.end());
  }
}

// "a|b" has a and b.
bool IsOneOf(std::string_view words, const std::string& word) {
  const std::vector<std::string> all = absl::StrSplit(std::string(words), '|');
  return std::find(all.begin(), all.end(), word) != all.end();
}

bool IsMore(const YamlNode& node) { return node.is_scalar() && node.text == kMore; }

// The table of keys has it in the maps at `path`, of any kind.
bool IsKeyOf(std::string_view path, std::string_view word) {
  const std::span<const KeySpec* const> keys = KeysOf(path);
  return std::any_of(keys.begin(), keys.end(), [&](const KeySpec* spec) { return WordOf(*spec) == word; });
}

// The path of the maps under a key: "modules" -> "modules.<name>".
std::string MapsUnder(std::string_view path) {
  for (const KeySpec* spec : KeysCalled(path.substr(path.rfind('.') + 1))) {
    if (spec->path == path && spec->type != KeyType::kMap) return InnerPath(*spec);
  }
  return std::string(path);
}

class MapShape {
 public:
  MapShape(const YamlNode& shape, const YamlNode& value, std::string_view path, Captures& captures)
      : shape_(shape), path_(MapsUnder(path)), captures_(captures) {
    for (const YamlEntry& entry : value.entries) left_.push_back(&entry);
  }

  bool Matches() {
    for (const YamlEntry& part : shape_.entries) {
      if (!part.key.starts_with('$') && part.key != kMore && !TakeKey(part)) return false;
    }
    for (size_t i = 0; i < shape_.entries.size(); ++i) {
      const YamlEntry& part = shape_.entries[i];
      if (!part.key.starts_with('$')) continue;
      const Capture capture = *CaptureOf(part.key);
      const bool more = i + 1 < shape_.entries.size() && shape_.entries[i + 1].key == kMore;
      if (part.value.is_null() ? !TakeRest(capture) : !TakeNamed(capture, part.value, more)) return false;
    }
    return left_.empty();
  }

 private:
  bool TakeKey(const YamlEntry& part) {
    for (size_t i = 0; i < left_.size(); ++i) {
      if (left_[i]->key != part.key) continue;
      const YamlNode& value = left_[i]->value;
      left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
      return HasShape(part.value, value, InsidePath(path_, part.key), captures_);
    }
    return false;
  }

  bool TakeRest(const Capture& capture) {
    YamlNode rest;
    rest.kind = YamlNode::Kind::kMap;
    const bool unknown = capture.kind == kUnknownKeys;
    const std::string of = capture.kind.empty() || unknown ? "" : MapsUnder(capture.kind);
    std::erase_if(left_, [&](const YamlEntry* entry) {
      const bool own = IsKeyOf(path_, entry->key);
      const bool taken = of.empty() ? !unknown || !own : IsKeyOf(of, entry->key) && (of == path_ || !own);
      if (taken && rest.entries.empty()) rest.where = entry->key_where;
      if (taken) rest.entries.push_back(*entry);
      return taken;
    });
    return (of.empty() || !rest.entries.empty()) && Bind(capture.name, rest, captures_);
  }

  bool TakeNamed(const Capture& capture, const YamlNode& shape, bool more) {
    size_t taken = 0;
    bool good = true;
    std::erase_if(left_, [&](const YamlEntry* entry) {
      Captures round;
      if ((!more && taken == 1) || IsKeyOf(path_, entry->key) || !HasShape(shape, entry->value, kUnknownPath, round))
        return false;
      good = Bind(capture.name, ScalarNode(entry->key, entry->key_where), round) && good;
      if (more) {
        AddRound(round, captures_);
      } else {
        captures_.merge(round);
      }
      ++taken;
      return true;
    });
    return good && taken > 0;
  }

  const YamlNode& shape_;
  const std::string path_;
  Captures& captures_;
  std::vector<const YamlEntry*> left_;  // the keys that no part has taken yet
};

class Filler {
 public:
  Filler(const Captures& captures, const Location& where) : captures_(captures), where_(where) {}

  bool twice() const { return twice_; }

  // `round`: of the repetition that the node is in.
  YamlNode Fill(const YamlNode& meant, size_t round) {
    switch (meant.kind) {
      case YamlNode::Kind::kScalar: return FillScalar(meant, round);
      case YamlNode::Kind::kSequence: return FillList(meant, round);
      case YamlNode::Kind::kMap: return FillMap(meant, round);
      case YamlNode::Kind::kNull: break;
    }
    return {};
  }

 private:
  const YamlNode& ValueOf(std::string_view name, size_t round) const {
    const auto found = captures_.find(name);
    if (found == captures_.end()) Bug(Cat("nothing is captured as $", name));
    return found->second.values[found->second.repeated ? round : 0];
  }

  // How often a node is repeated: by the first repeated name in it.
  size_t RoundsOf(const YamlNode& meant) const {
    const auto rounds = [&](const std::string& text) -> size_t {
      const auto found = text.starts_with('$') ? captures_.find(text.substr(1)) : captures_.end();
      return found != captures_.end() && found->second.repeated ? found->second.values.size() : 0;
    };
    if (meant.is_scalar()) return rounds(meant.text);
    for (const YamlNode& item : meant.items) {
      if (const size_t count = RoundsOf(item); count > 0) return count;
    }
    for (const YamlEntry& entry : meant.entries) {
      if (const size_t count = std::max(rounds(entry.key), RoundsOf(entry.value)); count > 0) return count;
    }
    return 0;
  }

  YamlNode FillScalar(const YamlNode& meant, size_t round) {
    YamlNode node = meant;
    node.where = where_;
    if (!meant.text.starts_with('$')) return node;
    if (!meant.text.ends_with(kMore)) return ValueOf(std::string_view(meant.text).substr(1), round);
    // "$name,..."
    const size_t end = meant.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", 1);
    const auto found = captures_.find(meant.text.substr(1, end - 1));
    if (found == captures_.end()) Bug(Cat("nothing is captured for ", meant.text));
    const std::string between = meant.text.substr(end, meant.text.size() - kMore.size() - end);
    node.text.clear();
    for (const YamlNode& value : found->second.values) Append(node.text, node.text.empty() ? "" : between, value.text);
    return node;
  }

  YamlNode FillList(const YamlNode& meant, size_t round) {
    YamlNode list;
    list.kind = YamlNode::Kind::kSequence;
    list.where = where_;
    for (size_t i = 0; i < meant.items.size(); ++i) {
      if (IsMore(meant.items[i])) continue;
      const bool more = i + 1 < meant.items.size() && IsMore(meant.items[i + 1]);
      const size_t rounds = more ? RoundsOf(meant.items[i]) : 1;
      for (size_t r = 0; r < rounds; ++r) list.items.push_back(Fill(meant.items[i], more ? r : round));
    }
    if (!list.items.empty()) list.where = list.items[0].where;
    return list;
  }

  // It begins where the first key does that was captured.
  YamlNode FillMap(const YamlNode& meant, size_t round) {
    YamlNode map;
    map.kind = YamlNode::Kind::kMap;
    map.where = where_;
    bool placed = false;
    for (size_t i = 0; i < meant.entries.size(); ++i) {
      const YamlEntry& part = meant.entries[i];
      if (part.key == kMore) continue;
      const bool more = i + 1 < meant.entries.size() && meant.entries[i + 1].key == kMore;
      YamlNode one;
      one.kind = YamlNode::Kind::kMap;
      one.entries = {part};
      const size_t rounds = more ? RoundsOf(one) : 1;
      const size_t before = map.entries.size();
      for (size_t r = 0; r < rounds; ++r) AddEntry(part, more ? r : round, /*over=*/!more, map);
      if (!placed && part.key.starts_with('$') && map.entries.size() > before) {
        map.where = map.entries[before].key_where;
        placed = true;
      }
    }
    return map;
  }

  // `over`: all keys of a capture replace keys that are there.
  void AddEntry(const YamlEntry& part, size_t round, bool over, YamlNode& map) {
    const auto add = [&](YamlEntry entry, bool replace) {
      const auto there = std::find_if(map.entries.begin(), map.entries.end(),
                                      [&](const YamlEntry& known) { return known.key == entry.key; });
      if (there == map.entries.end()) {
        map.entries.push_back(std::move(entry));
      } else if (replace) {
        *there = std::move(entry);
      } else {
        twice_ = true;
      }
    };
    const bool captured = part.key.starts_with('$');
    if (captured && part.value.is_null()) {
      for (const YamlEntry& entry : ValueOf(std::string_view(part.key).substr(1), round).entries) add(entry, over);
      return;
    }
    const YamlNode name = captured ? ValueOf(std::string_view(part.key).substr(1), round) : YamlNode();
    add({captured ? name.text : part.key, captured ? name.where : where_, Fill(part.value, round)}, false);
  }

  const Captures& captures_;
  const Location& where_;
  bool twice_ = false;  // a key
};

bool ListHasShape(const YamlNode& shape, const YamlNode& value, std::string_view path, Captures& captures) {
  const bool more = !shape.items.empty() && IsMore(shape.items.back());
  const size_t first = shape.items.size() - (more ? 2 : 0);  // the items before the one that is repeated
  if (value.items.size() < first + (more ? 1 : 0) || (!more && value.items.size() != first)) return false;
  for (size_t i = 0; i < first; ++i) {
    if (!HasShape(shape.items[i], value.items[i], path, captures)) return false;
  }
  for (size_t i = first; i < value.items.size(); ++i) {
    Captures round;
    if (!HasShape(shape.items[first], value.items[i], path, round)) return false;
    AddRound(round, captures);
  }
  return true;
}

}  // namespace

YamlNode ShapeOf(std::string_view text) {
  Diagnostics problems;
  std::optional<YamlNode> shape = ParseYaml(std::string(text), {}, problems);
  if (!shape) Bug(Cat("no YAML: ", text));
  return *std::move(shape);
}

bool HasShape(const YamlNode& shape, const YamlNode& value, std::string_view path, Captures& captures) {
  switch (shape.kind) {
    case YamlNode::Kind::kMap: return value.is_map() && MapShape(shape, value, path, captures).Matches();
    case YamlNode::Kind::kSequence: return value.is_sequence() && ListHasShape(shape, value, path, captures);
    case YamlNode::Kind::kNull: return value.is_null();
    case YamlNode::Kind::kScalar: break;
  }
  const std::optional<Capture> capture = CaptureOf(shape.text);
  if (!capture) return value.is_scalar() && IsOneOf(shape.text, value.text);
  const std::optional<ValueParts> parts = PartsOfKind(capture->kind.empty() ? "scalar" : capture->kind, value);
  if (!parts || !Bind(capture->name, value, captures)) return false;
  return std::all_of(parts->begin(), parts->end(), [&](const auto& part) {
    return Bind(Cat(capture->name, ".", part.first), part.second, captures);
  });
}

std::optional<YamlNode> FilledIn(const YamlNode& meant, const Captures& captures, const Location& where) {
  Filler filler(captures, where);
  YamlNode filled = filler.Fill(meant, 0);
  if (filler.twice()) return std::nullopt;
  return filled;
}

}  // namespace planwright
