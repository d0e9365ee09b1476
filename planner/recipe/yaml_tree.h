// YAML text -> a tree in which every key and value keeps its place. The strict part of YAML that recipes use: maps,
// lists and scalars. Refused with their place: anchors, aliases, tags, merge keys, further documents, repeated keys,
// keys that are not words, tabs in indentation, quotes left open, text that is not UTF-8 or hides control characters,
// more than 128 KiB, more than 64 levels. yaml_tree.cc is the only includer of yaml-cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/diagnostics/location.h"

namespace planwright {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // of a scalar, without quotes and escapes
  bool quoted = false;  // a quoted or block scalar, which is always a string
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // in the order of the text
  Location where;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_map() const { return kind == Kind::kMap; }
  const YamlEntry* Find(std::string_view key) const;  // linear; null if absent
};

struct YamlEntry {
  std::string key;
  Location key_where;
  YamlNode value;
};

// Where the text starts in what the user sees: an override's value starts behind its `=`.
struct YamlOrigin {
  std::shared_ptr<const std::string> file;
  int line = 1, column = 1;
};

// bytes, with the files that it extends; a long recipe is a thirtieth of it
inline constexpr size_t kLargestRecipe = 1 << 17;
inline constexpr size_t kDeepestRecipe = 64;  // levels of maps and lists

// Null if the text was refused, with the reasons in `problems`. Empty text is a null node.
std::optional<YamlNode> ParseYaml(const std::string& text, const YamlOrigin& origin, Diagnostics& problems);

// "a map", "the integer 5", "the text \"five\"", "nothing": what a value is, for messages.
std::string Describe(const YamlNode& node);

}  // namespace planwright
