#include "planner/format/source_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "planner/diagnostics/text.h"
#include "planner/recipe/text_checks.h"

namespace planwright {
namespace {

constexpr size_t kNone = std::string::npos;

// Whether a quote after `before` opens a value, and is no letter of a plain one: it's.
bool OpensAfter(char before) { return std::string_view(" [{,:\n").find(before) != kNone; }

}  // namespace

SourceText::SourceText(const std::string& text) : text_(text) {
  for (size_t at = 0; at < text_.size();) {
    const size_t end = std::min(text_.find('\n', at), text_.size());
    starts_.push_back(at);
    lines_.emplace_back(absl::StripTrailingAsciiWhitespace(text_.substr(at, end - at)));
    at = end + 1;
  }
}

bool SourceText::IsComment(int line) const {
  const size_t first = Line(line).find_first_not_of(" \t");
  return first != kNone && Line(line)[first] == '#';
}

size_t SourceText::Indent(int line) const {
  const size_t first = Line(line).find_first_not_of(' ');
  return first == kNone ? 0 : first;
}

size_t SourceText::Offset(const Location& where) const {
  return std::min(starts_[static_cast<size_t>(where.line - 1)] + static_cast<size_t>(where.column - 1), text_.size());
}

int SourceText::LineOf(size_t offset) const {
  return static_cast<int>(std::upper_bound(starts_.begin(), starts_.end(), offset) - starts_.begin());
}

bool SourceText::IsFlow(const YamlNode& node) const {
  if (!node.is_map() && !node.is_sequence()) return false;
  const size_t at = Offset(node.where);
  return at < text_.size() && (text_[at] == '{' || text_[at] == '[');
}

bool SourceText::IsBlockScalar(const YamlNode& node) const {
  const size_t at = Offset(node.where);
  return node.is_scalar() && node.quoted && at < text_.size() && (text_[at] == '|' || text_[at] == '>');
}

std::string SourceText::Written(const YamlNode& node) const {
  const size_t at = Offset(node.where);
  if (!node.quoted || at >= text_.size()) return node.text;
  const size_t end = EndOfQuoted(text_, at);
  if (end == kNone) return node.text;
  const std::string written = text_.substr(at, end - at);
  // Single quotes only where double ones need escapes.
  const std::string inner = written.substr(1, written.size() - 2);
  return written[0] == '\'' && inner.find_first_of("\\\"'") == kNone ? Cat("\"", inner, "\"") : written;
}

size_t SourceText::EndOfFlow(size_t at) const {
  int depth = 0;
  for (size_t i = at; i < text_.size(); ++i) {
    const char c = text_[i], before = i == 0 ? '\n' : text_[i - 1];
    if ((c == '"' || c == '\'') && OpensAfter(before)) {
      const size_t end = EndOfQuoted(text_, i);
      if (end == kNone) return text_.size();
      i = end - 1;
    } else if (c == '#' && (before == ' ' || before == '\n' || before == '\t')) {
      i = std::min(text_.find('\n', i), text_.size());
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      return i;
    }
  }
  return text_.size();
}

int SourceText::LastLine(const YamlNode& node, int parent, int limit) const {
  const size_t at = Offset(node.where);
  if (IsFlow(node)) return LineOf(EndOfFlow(at));
  if (!node.is_scalar()) return node.where.line;
  int last = node.where.line;
  if (IsBlockScalar(node)) {
    for (int line = last + 1; line < limit && line <= lines(); ++line) {
      if (IsBlank(line)) continue;
      if (static_cast<int>(Indent(line)) < parent) break;
      last = line;
    }
    return last;
  }
  if (node.quoted) {
    const size_t end = EndOfQuoted(text_, at);
    return end == kNone ? last : LineOf(end - 1);
  }
  if (text_.compare(at, node.text.size(), node.text) == 0) return last;
  for (int line = last + 1; line < limit && line <= lines() && !IsComment(line); ++line) {
    if (!IsBlank(line)) last = line;
  }
  return last;
}

size_t SourceText::CommentAt(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    const char before = i == 0 ? '\n' : line[i - 1];
    if ((line[i] == '"' || line[i] == '\'') && OpensAfter(before)) {
      const size_t end = EndOfQuoted(std::string(line), i);
      if (end == kNone) return kNone;
      i = end - 1;
    } else if (line[i] == '#' && (i == 0 || before == ' ' || before == '\t')) {
      return i;
    }
  }
  return kNone;
}

void SourceText::MarkScalars(const YamlNode& node, int parent, int limit, std::vector<bool>& inside) const {
  if (node.is_scalar()) {
    const int last = LastLine(node, parent, limit);
    // The last line of a quoted text may end in a comment, but its beginning is text: such a line counts as text.
    for (int line = node.where.line + (IsBlockScalar(node) ? 1 : 0); line <= last && last > node.where.line; ++line)
      inside[static_cast<size_t>(line)] = true;
  }
  for (const YamlNode& item : node.items)
    MarkScalars(item, static_cast<int>(Indent(item.where.line)) + 1, limit, inside);
  for (size_t i = 0; i < node.entries.size(); ++i) {
    const int end = i + 1 < node.entries.size() ? node.entries[i + 1].key_where.line : limit;
    MarkScalars(node.entries[i].value, node.entries[i].key_where.column,
                std::max(end, node.entries[i].value.where.line + 1), inside);
  }
}

std::vector<std::string> SourceText::Comments(const YamlNode& tree) const {
  std::vector<bool> inside(lines_.size() + 2, false);
  MarkScalars(tree, 0, lines() + 1, inside);
  std::vector<std::string> comments;
  for (int line = 1; line <= lines(); ++line) {
    if (inside[static_cast<size_t>(line)]) continue;
    const size_t at = CommentAt(Line(line));
    if (at != kNone) comments.push_back(Line(line).substr(at));
  }
  return comments;
}

}  // namespace planwright
