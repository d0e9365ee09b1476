#include "planner/recipe/yaml/source_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "planner/base/text/text.h"
#include "planner/recipe/yaml/text_checks.h"

namespace planwright {
namespace {

constexpr size_t kNone = std::string::npos;

// The tokens of YAML that decide what a `#` is. Behind a space it is a comment, and also where a token may begin:
// behind a closing quote or bracket, a comma, or the sign of a block scalar. Within a plain value it is a letter, as
// are quotes and, outside of brackets, brackets there.
class Tokens {
 public:
  Tokens(std::string_view text, size_t at, int depth) : text_(text), at_(at), depth_(depth) {}

  // The next `#` that begins a comment, or bracket that closes the outermost one; npos if there is none.
  size_t Next() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool begins = !plain_, behind_value = closed_;
      if (IsBlank(at_)) continue;
      closed_ = false;
      if (c == '#' && (begins || at_ == 0 || IsBlank(at_ - 1))) {
        plain_ = false;
        return at_;
      }
      if (depth_ > 0 && c == ',') {
        plain_ = false;
      } else if ((c == '[' || c == '{') && (begins || depth_ > 0)) {
        plain_ = false;
        ++depth_;
      } else if ((c == ']' || c == '}') && depth_ > 0) {
        plain_ = false;
        closed_ = true;
        if (--depth_ == 0) return at_++;
      } else if (c == ':' && ((depth_ > 0 && behind_value) || EndsKey(at_ + 1))) {
        plain_ = false;
      } else if (begins && (c == '"' || c == '\'')) {
        const size_t end = EndOfQuoted(text_, at_);
        if (end == kNone) return kNone;
        at_ = end - 1;
        closed_ = true;
      } else if (begins && depth_ == 0 && (c == '|' || c == '>')) {
        at_ = std::min(text_.find_first_not_of("+-0123456789", at_ + 1), text_.size()) - 1;
      } else if (begins && !((c == '-' || c == '?') && IsBlank(at_ + 1))) {
        plain_ = true;
      }
    }
    return kNone;
  }
  void SkipComment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

 private:
  bool IsBlank(size_t at) const { return at >= text_.size() || absl::ascii_isspace(text_[at]); }
  bool EndsKey(size_t at) const {
    return IsBlank(at) || (depth_ > 0 && std::string_view(",[]{}").find(text_[at]) != kNone);
  }

  std::string_view text_;
  size_t at_;
  int depth_;
  bool plain_ = false;   // within a plain value
  bool closed_ = false;  // behind a closing quote or bracket
};

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
  Tokens tokens(text_, at, 0);
  for (size_t i = tokens.Next(); i != kNone; i = tokens.Next()) {
    if (text_[i] != '#') return i;
    tokens.SkipComment();
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

size_t SourceText::CommentAt(std::string_view line, int depth) {
  Tokens tokens(line, 0, depth);
  size_t at = tokens.Next();
  while (at != kNone && line[at] != '#') at = tokens.Next();
  return at;
}

void SourceText::MarkScalars(const YamlNode& node, int parent, int limit, std::vector<bool>& inside,
                             std::vector<bool>& flow) const {
  if (IsFlow(node)) {
    const int last = std::min(LastLine(node, parent, limit), lines());
    for (int line = node.where.line + 1; line <= last; ++line) flow[static_cast<size_t>(line)] = true;
  }
  if (node.is_scalar()) {
    const int last = LastLine(node, parent, limit);
    // The last line of a quoted text may end in a comment, but its beginning is text: such a line counts as text.
    for (int line = node.where.line + (IsBlockScalar(node) ? 1 : 0); line <= last && last > node.where.line; ++line)
      inside[static_cast<size_t>(line)] = true;
  }
  for (const YamlNode& item : node.items)
    MarkScalars(item, static_cast<int>(Indent(item.where.line)) + 1, limit, inside, flow);
  for (size_t i = 0; i < node.entries.size(); ++i) {
    const int end = i + 1 < node.entries.size() ? node.entries[i + 1].key_where.line : limit;
    MarkScalars(node.entries[i].value, node.entries[i].key_where.column,
                std::max(end, node.entries[i].value.where.line + 1), inside, flow);
  }
}

std::vector<std::string> SourceText::Comments(const YamlNode& tree) const {
  std::vector<bool> inside(lines_.size() + 2, false), flow = inside;
  MarkScalars(tree, 0, lines() + 1, inside, flow);
  std::vector<std::string> comments;
  for (int line = 1; line <= lines(); ++line) {
    if (inside[static_cast<size_t>(line)]) continue;
    // How many brackets are open is not counted here: no line closes more than there can be.
    const size_t at = CommentAt(Line(line), flow[static_cast<size_t>(line)] ? static_cast<int>(kDeepestRecipe) + 1 : 0);
    if (at != kNone) comments.push_back(Line(line).substr(at));
  }
  return comments;
}

}  // namespace planwright
