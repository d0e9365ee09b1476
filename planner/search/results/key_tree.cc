#include "planner/search/results/key_tree.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace planwright {
namespace {

constexpr size_t kLongestLine = 110;  // of a map in one line

// Letters, digits and signs that mean nothing in YAML, wherever the text stands.
bool IsPlain(std::string_view text) {
  if (text.empty() || (text[0] == '-' && text.size() == 1)) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' || c == '+' || c == '-';
  });
}

// A list, map or quoted text that ends where `text` ends.
bool IsClosed(std::string_view text) {
  std::string open;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (quote == '"' && c == '\\') ++i;
      if (c == quote && c == '\'' && text.substr(i + 1).starts_with('\'')) {
        ++i;  // '' is one quote
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '[' || c == '{') {
      open += c;
    } else if (c == ']' || c == '}') {
      if (open.empty() || open.back() != (c == ']' ? '[' : '{')) return false;
      open.pop_back();
    } else if (c == '#') {
      return false;  // perhaps a comment
    }
    if (open.empty() && !quote && i + 1 < text.size()) return false;
  }
  return !text.empty() && open.empty() && !quote;
}

bool IsMap(const std::string& value) { return value.starts_with("{"); }

}  // namespace

std::string ScalarText(const std::string& text) { return IsPlain(text) ? text : QuotedText(text); }

std::string QuotedText(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

const KeyTree::Node* KeyTree::Node::Find(std::string_view name) const {
  const auto it = std::find_if(children.begin(), children.end(), [&](const Node& child) { return child.key == name; });
  return it == children.end() ? nullptr : &*it;
}

absl::Status KeyTree::Set(const std::string& override) {
  const size_t equals = override.find('=');
  if (equals == std::string::npos) return absl::InvalidArgumentError(absl::StrCat(override, " is not an override"));
  std::string value = override.substr(equals + 1);
  while (value.ends_with(' ')) value.pop_back();
  while (value.starts_with(' ')) value.erase(0, 1);
  if (!IsPlain(value) && !IsClosed(value)) {
    return absl::InvalidArgumentError(absl::StrCat("the value of `", override,
                                                   "` cannot be written into a recipe as it is: put it into quotes, or "
                                                   "write it into the recipe"));
  }
  Node* node = &root_;
  Node* map = node;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(override.substr(0, equals), '.'))) {
    if (!node->value.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("`", override, "` changes a part of `", node->key, "=",
                                                     node->value, "`: write each of its keys as an override"));
    }
    if (!IsPlain(word))
      return absl::InvalidArgumentError(absl::StrCat("`", override, "` has a key that cannot be written: ", word));
    auto it = std::find_if(node->children.begin(), node->children.end(),
                           [&](const Node& child) { return child.key == word; });
    if (it == node->children.end()) it = node->children.insert(it, Node{word, "", {}});
    map = node;
    node = &*it;
  }
  // Another kind has other keys (recipe_tree.h).
  if (node->key == "kind" && !node->value.empty() && node->value != value) {
    map->children = {Node{"kind", value, {}}};
    return absl::OkStatus();
  }
  if (!node->children.empty()) {
    if (IsMap(value)) {
      return absl::InvalidArgumentError(absl::StrCat("`", override,
                                                     "` is laid over keys that were given before it: "
                                                     "write each of its keys as an override"));
    }
    node->children.clear();
  }
  node->value = value;
  return absl::OkStatus();
}

std::string KeyTree::Find(const std::string& key) const {
  const Node* node = &root_;
  for (const std::string& word : std::vector<std::string>(absl::StrSplit(key, '.'))) {
    node = node->Find(word);
    if (!node) return "";
  }
  return node->value;
}

void KeyTree::Write(const Node& node, size_t depth, std::string& text) {
  const std::string start = absl::StrCat(std::string(2 * depth, ' '), node.key, ":");
  if (node.children.empty()) {
    absl::StrAppend(&text, start, " ", node.value, "\n");
    return;
  }
  // In one line. A plain value there must not hold a comma, which none does.
  std::string line = start + " {";
  bool leaves = true;
  for (const Node& child : node.children) {
    leaves &= child.children.empty();
    absl::StrAppend(&line, &child == &node.children.front() ? "" : ", ", child.key, ": ", child.value);
  }
  if (leaves && line.size() < kLongestLine) {
    absl::StrAppend(&text, line, "}\n");
    return;
  }
  absl::StrAppend(&text, start, "\n");
  for (const Node& child : node.children) Write(child, depth + 1, text);
}

std::string KeyTree::Yaml() const {
  std::string text;
  for (const Node& child : root_.children) Write(child, 0, text);
  return text;
}

}  // namespace planwright
