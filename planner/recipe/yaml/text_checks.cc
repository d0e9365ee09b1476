#include "planner/recipe/yaml/text_checks.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

// Editors of Windows write a byte order mark; the two others are those of UTF-16.
bool CheckEncoding(const std::string& text, const YamlOrigin& origin, Diagnostics& problems) {
  if (text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    problems.Error(DiagnosticKind::kFileEncoding, LocationOfByte(text, 0, origin),
                   "the file starts with a byte order mark", "save it as UTF-8 without a byte order mark");
    return false;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t length = CodePointLength(text, at);
    if (length == 0) {
      problems.Error(DiagnosticKind::kFileEncoding, LocationOfByte(text, at, origin),
                     absl::StrFormat("byte 0x%02x is not UTF-8", static_cast<unsigned char>(text[at])),
                     "save the file as UTF-8");
      return false;
    }
    // For YAML a line ends there, for editors and people it does not: a key behind it would look like a comment.
    const bool lone_return = text[at] == '\r' && at + 1 < text.size() && text[at + 1] != '\n';
    if (lone_return || IsHiddenControl(text, at, length)) {
      problems.Error(
          DiagnosticKind::kFileEncoding, LocationOfByte(text, at, origin),
          Cat("the text contains a hidden control character: ", Printable(std::string_view(text).substr(at, length))),
          "remove it: with it the text looks different from what it is");
      return false;
    }
    at += length;
  }
  return true;
}

// The YAML parser reports a tab at a later location and in other words.
bool CheckIndentation(const std::string& text, const YamlOrigin& origin, Diagnostics& problems) {
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    // A tab counts only before the first character of a line, and not in blank lines or comments.
    const size_t first = text.find_first_not_of(" \t\r", line);
    const size_t tab = text.find('\t', line);
    if (first < end && tab < first && text[first] != '#') {
      problems.Error(DiagnosticKind::kYamlSyntax, LocationOfByte(text, tab, origin), "the indentation contains a tab",
                     "indent with spaces: YAML does not allow tabs here");
      return false;
    }
    line = end + 1;
  }
  return true;
}

}  // namespace

Location LocationOfByte(const std::string& text, size_t at, const YamlOrigin& origin) {
  Location where;
  where.file = origin.file;
  const size_t line_start = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
  // Only the first line continues a line of the origin: later lines start at column 1.
  const int lines_before = static_cast<int>(std::count(text.begin(), text.begin() + at, '\n'));
  where.line = origin.line + lines_before;
  where.column = static_cast<int>(at - line_start) + (lines_before == 0 ? origin.column : 1);
  return where;
}

bool CheckText(const std::string& text, const YamlOrigin& origin, Diagnostics& problems) {
  if (text.size() > kLargestRecipe) {
    Location where;
    where.file = origin.file;
    problems.Error(DiagnosticKind::kTooLarge, where, Cat("the recipe has more than ", kLargestRecipe, " bytes"),
                   "check that the file is a recipe");
    return false;
  }
  return CheckEncoding(text, origin, problems) && CheckIndentation(text, origin, problems);
}

// Double quotes escape with a backslash; single quotes escape a quote by writing it twice.
size_t EndOfQuoted(std::string_view text, size_t at) {
  const char quote = text[at];
  for (size_t i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != '\'') return i + 1;
      ++i;  // '' inside single quotes is one quote
    }
  }
  return std::string::npos;
}

size_t FirstOpenQuote(const std::string& text, size_t end) {
  for (size_t at = 0; at < end;) {
    const char before = at == 0 ? '\n' : text[at - 1];
    // Elsewhere a quote or `#` is a part of a plain value, as in `name: it's`.
    const bool starts_word = before == ' ' || before == '\n' || before == '[' || before == '{' || before == ',';
    if (text[at] == '#' && starts_word) {
      at = text.find('\n', at);
    } else if ((text[at] == '"' || text[at] == '\'') && starts_word) {
      const size_t close = EndOfQuoted(text, at);
      if (close == std::string::npos || text.find('\n', at) < close) return at;
      at = close;
    } else {
      ++at;
    }
  }
  return std::string::npos;
}

}  // namespace planwright
