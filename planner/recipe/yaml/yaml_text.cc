#include "planner/recipe/yaml/yaml_text.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

constexpr size_t kWidth = 120, kBeforeComment = 2;
constexpr size_t kLongestMap = 110;  // a map that no text had, in one line

using Lines = std::vector<std::string>;

// No text of a tree has control characters.
std::string QuotedScalar(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

// Whether a plain scalar of a flow list may have this text.
bool IsPlainInFlow(const std::string& text) {
  return !text.empty() && text.find_first_of(",[]{}:#\"'\n") == std::string::npos &&
         std::string_view("*&!|>%@`-?").find(text[0]) == std::string_view::npos && text.back() != ' ';
}

// Entries of a map and items of a list.
size_t SizeOf(const YamlNode& node) { return node.entries.size() + node.items.size(); }

bool HasComments(const YamlNode& node) {
  if (node.comments || (node.style && !node.style->tail.above.empty())) return true;
  return std::any_of(node.items.begin(), node.items.end(), HasComments) ||
         std::any_of(node.entries.begin(), node.entries.end(),
                     [](const YamlEntry& entry) { return HasComments(entry.value); });
}

// Of a map that no text had: values alone, which all fit into one line.
bool FitsLine(const YamlNode& map, size_t before) {
  const bool nested = std::any_of(map.entries.begin(), map.entries.end(), [](const YamlEntry& entry) {
    return (entry.value.is_map() && !entry.value.entries.empty()) || HasComments(entry.value);
  });
  return !nested && before + FlowText(map).size() <= kLongestMap;
}

class Printer {
 public:
  static Lines Tree(const YamlNode& tree) {
    Lines lines = tree.comments ? tree.comments->above : Lines();
    if (SizeOf(tree) > 0) {
      Lines block = Block(tree, 0);
      lines.insert(lines.end(), block.begin(), block.end());
    }
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

 private:
  // What stands above an entry or item.
  struct Lead {
    bool blank = false;
    Lines lines;
  };

  static bool IsBlock(const YamlNode& node, size_t before) {
    if (SizeOf(node) == 0) return false;
    const YamlStyle::Form form = node.style ? node.style->form : YamlStyle::Form::kFits;
    if (form != YamlStyle::Form::kFits) return form == YamlStyle::Form::kBlock;
    return node.is_map() ? !FitsLine(node, before) : std::any_of(node.items.begin(), node.items.end(), HasComments);
  }

  static Lines Block(const YamlNode& node, size_t indent) {
    Lines lines;
    const std::string spaces(indent, ' ');
    const auto add = [&](const Lead& lead, bool is_first) {
      if (lead.blank && !is_first) lines.emplace_back();
      for (const std::string& line : lead.lines) lines.push_back(line.empty() ? "" : spaces + line);
    };
    const auto add_part = [&](const std::string& head, const YamlNode& value) {
      Lead lead;
      if (value.comments) lead = {value.comments->blank, value.comments->above};
      const Lines part = Part(head, value, indent, lead);
      add(lead, lines.empty());
      lines.insert(lines.end(), part.begin(), part.end());
    };
    for (const YamlEntry& entry : node.entries) add_part(KeyText(entry.key) + ":", entry.value);
    for (const YamlNode& item : node.items) add_part("-", item);
    if (node.style && !node.style->tail.above.empty()) add({node.style->tail.blank, node.style->tail.above}, false);
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

  // `head`: "tp:" or "-". Adds comments to `lead` that can stand nowhere else.
  static Lines Part(const std::string& head, const YamlNode& value, size_t indent, Lead& lead) {
    const std::string start = std::string(indent, ' ') + head;
    if (value.style && !value.style->lines.empty()) return Kept(start, *value.style, indent);
    if (IsBlock(value, start.size() + 1)) {
      Lines lines = Block(value, indent + 2);
      if (head == "-") return Item(std::move(lines), indent, lead);
      lines.insert(lines.begin(), WithComment(start, value));
      return lines;
    }
    std::string text = value.is_null() ? start : Cat(start, " ", FlowText(value));
    const bool comment = value.comments && !value.comments->beside.empty();
    if (!comment && text.size() > kWidth && SizeOf(value) > 0) return Broken(head, value, indent);
    return {WithComment(std::move(text), value)};
  }

  // "- name: a": the first line of the block is that of the dash, and comments above its first key go above the item.
  static Lines Item(Lines lines, size_t indent, Lead& lead) {
    while (absl::StripLeadingAsciiWhitespace(lines[0])[0] == '#') {
      lead.lines.emplace_back(absl::StripLeadingAsciiWhitespace(lines[0]));
      lines.erase(lines.begin());
      while (lines[0].empty()) lines.erase(lines.begin());
    }
    lines[0] = Cat(std::string(indent, ' '), "- ", lines[0].substr(indent + 2));
    return lines;
  }

  // The comment stays in its column if there is room.
  static std::string WithComment(std::string text, const YamlNode& value) {
    if (!value.comments || value.comments->beside.empty()) return text;
    text.resize(std::max(value.comments->column, text.size() + kBeforeComment), ' ');
    return text + value.comments->beside;
  }

  // A value of several lines stays as it is written, moved as its key is. Below its key a value is deeper than it.
  static Lines Kept(const std::string& start, const YamlStyle& style, size_t indent) {
    Lines lines = {Cat(start, " ", style.lines[0])};
    const auto depth = static_cast<std::ptrdiff_t>(indent);
    for (size_t i = 1; i < style.lines.size(); ++i) {
      const std::string spaces(static_cast<size_t>(std::max(style.indents[i] + depth, depth + 1)), ' ');
      lines.push_back(style.lines[i].empty() ? "" : spaces + style.lines[i]);
    }
    return lines;
  }

  // A collection that is too long for a line, one entry a line.
  static Lines Broken(const std::string& head, const YamlNode& value, size_t indent) {
    const std::string inner(indent + 2, ' ');
    Lines lines = {std::string(indent, ' ') + head};
    for (const YamlEntry& entry : value.entries)
      lines.push_back(Cat(inner, KeyText(entry.key), ": ", FlowText(entry.value)));
    for (const YamlNode& item : value.items) lines.push_back(Cat(inner, "- ", FlowText(item)));
    if (head == "-") {
      lines.erase(lines.begin());
      lines[0] = Cat(std::string(indent, ' '), "- ", lines[0].substr(indent + 2));
    }
    return lines;
  }
};

}  // namespace

std::string YamlText(const YamlNode& tree) {
  const Lines lines = Printer::Tree(tree);
  return lines.empty() ? "" : absl::StrJoin(lines, "\n") + "\n";
}

std::string FlowText(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "~";
    case YamlNode::Kind::kScalar: {
      if (node.style && !node.style->written.empty()) return node.style->written;
      const bool number = node.text.starts_with('-') && node.text.size() > 1;
      return node.quoted || !(IsPlainInFlow(node.text) || number) ? QuotedScalar(node.text) : node.text;
    }
    case YamlNode::Kind::kSequence:
      for (const YamlNode& item : node.items) parts.push_back(FlowText(item));
      return Cat("[", absl::StrJoin(parts, ", "), "]");
    case YamlNode::Kind::kMap: break;
  }
  for (const YamlEntry& entry : node.entries) parts.push_back(Cat(KeyText(entry.key), ": ", FlowText(entry.value)));
  return Cat("{", absl::StrJoin(parts, ", "), "}");
}

std::string KeyText(const std::string& key) {
  const bool plain = std::all_of(key.begin(), key.end(),
                                 [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-'; }) &&
                     !key.starts_with('-');
  return plain ? key : QuotedScalar(key);
}

std::vector<std::string> CommentLines(const std::string& text) {
  Lines lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    absl::StripTrailingAsciiWhitespace(&line);
    line.insert(0, line.empty() ? "#" : "# ");
  }
  while (!lines.empty() && lines.back() == "#") lines.pop_back();
  return lines;
}

}  // namespace planwright
