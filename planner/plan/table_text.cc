#include "planner/plan/table_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"

namespace planwright {

using std::string;

namespace {

constexpr size_t kPageColumns = 120;

absl::string_view Viewed(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::vector<string> LogicalLines(std::string_view entry) {
  std::vector<string> lines;
  for (absl::string_view line : absl::StrSplit(Viewed(entry), '\n')) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty()) continue;
    if (absl::StartsWith(line, "    ")) {
      Require(!lines.empty(), "an entry of a table begins with a continuation line: " + string(text));
      absl::StrAppend(&lines.back(), " ", text);
    } else {
      lines.emplace_back(text);
    }
  }
  return lines;
}

string TakeWord(string& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  string word = rest.substr(0, end);
  rest = string(absl::StripAsciiWhitespace(rest.substr(end)));
  return word;
}

bool TakeAfterKeyword(std::string_view word, string& rest, string& after) {
  const string keyword = absl::StrCat(" ", Viewed(word), " ");
  const size_t at = rest.find(keyword);
  if (at == string::npos) return false;
  after = rest.substr(at + keyword.size());
  rest.resize(at);
  return true;
}

void AppendWrapped(std::string_view text, std::string_view indent, string& page) {
  size_t column = 0;
  for (absl::string_view word : absl::StrSplit(Viewed(text), ' ')) {
    if (column > 0 && column + 1 + word.size() > kPageColumns) {
      absl::StrAppend(&page, "\n", Viewed(indent));
      column = indent.size();
    } else if (column > 0) {
      page += ' ';
      ++column;
    }
    absl::StrAppend(&page, word);
    column += word.size();
  }
  page += '\n';
}

}  // namespace planwright
