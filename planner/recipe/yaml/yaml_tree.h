// A recipe as a value: a tree in which every key and value has its location. ParseYaml makes it of text, ReadComments
// (yaml_comments.h) adds what the text has beside values, ApplyEdits (tree_edits.h) changes it, and YamlText
// (yaml_text.h) makes text of it. Recipes use only a part of YAML: maps, lists and scalars. Everything else is refused
// with a message at its location: anchors, aliases, tags, merge keys, second documents, repeated keys, keys that are
// not words, tabs in the indentation, open quotes, text that is not UTF-8 or has hidden control characters, more than
// 128 KiB, more than 64 levels. Only yaml_tree.cc includes yaml-cpp.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

struct YamlEntry;

// What stands around a key, or the dash of an item, and is no value. Those of the tree itself are of the whole file.
struct YamlComments {
  bool blank = false;              // a blank line is above it
  std::vector<std::string> above;  // comments without indentation; "" is a blank line between them
  std::string beside;              // the comment at the end of its line
  size_t column = 0;               // where that one begins, from 0
};

// How a value is written, where the text may say the same in several ways.
struct YamlStyle {
  enum class Form { kFits, kBlock, kFlow };  // of a map or list; kFits: in one line if there is room
  Form form = Form::kFits;
  std::string written;  // a scalar, unless FlowText writes it so
  // A value of several lines, which stays as it is: from its beginning, and with their indentation, counted from that
  // of its key.
  std::vector<std::string> lines;
  std::vector<std::ptrdiff_t> indents;
  YamlComments tail;  // `blank` and `above`: after the last entry of a block
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // for a scalar: its text without quotes and escapes
  bool quoted = false;  // a scalar in quotes or a block scalar: always text
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // in the order of the file
  Location where;
  // Null: none, or they were not read. Copies of a tree share them.
  std::shared_ptr<const YamlComments> comments;
  std::shared_ptr<const YamlStyle> style;

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_sequence() const { return kind == Kind::kSequence; }
  bool is_map() const { return kind == Kind::kMap; }
  const YamlEntry* Find(std::string_view key) const;  // linear; null if absent
  // Puts another value in its place, around which the comments stay.
  void Replace(YamlNode value);
  // What it has inside is changed: lines that stay as they are would not say it.
  void MarkChanged();
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

// The same of a text that is no recipe of its own, where what is wrong with it is told elsewhere or cannot be.
std::optional<YamlNode> ParseValue(const std::string& text, const YamlOrigin& origin = {});

// A scalar that no text had. `quoted`: a text, also if it looks like a number.
YamlNode ScalarNode(std::string text, const Location& where = {}, bool quoted = false);

// What a value is, for messages: "a map", "the number 5", "the text \"five\"", "nothing".
std::string Describe(const YamlNode& node);

}  // namespace planwright
