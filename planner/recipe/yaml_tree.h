// Parses YAML text into a tree in which every key and value has its location. Recipes use only a part of YAML: maps,
// lists and scalars. Everything else is refused with a message at its location: anchors, aliases, tags, merge keys,
// second documents, repeated keys, keys that are not words, tabs in the indentation, open quotes, text that is not
// UTF-8 or has hidden control characters, more than 128 KiB, more than 64 levels. Only yaml_tree.cc includes yaml-cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

struct YamlEntry;

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // for a scalar: its text without quotes and escapes
  bool quoted = false;  // a scalar in quotes or a block scalar: always text
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // in the order of the file
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

// The location where the text starts in what the user sees. For example, the value of an override starts after its `=`.
struct YamlOrigin {
  std::shared_ptr<const std::string> file;
  int line = 1, column = 1;
};

// Bytes of a recipe together with the files that it extends. Long recipes have about a thirtieth of it.
inline constexpr size_t kLargestRecipe = 1 << 17;
inline constexpr size_t kDeepestRecipe = 64;  // levels of maps and lists

// The tree; nothing, with the reasons in `problems`, if the text is refused. Empty text gives a null node.
std::optional<YamlNode> ParseYaml(const std::string& text, const YamlOrigin& origin, Diagnostics& problems);

// What a value is, for messages: "a map", "the number 5", "the text \"five\"", "nothing".
std::string Describe(const YamlNode& node);

}  // namespace planwright
