#include "planner/plan/table_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/bug.h"

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
    if (text.empty() || text.front() == '#') continue;
    if (absl::StartsWith(line, "    ")) {
      if (lines.empty()) Bug("an entry of a table begins with a continuation line: " + string(text));
      absl::StrAppend(&lines.back(), " ", text);
    } else {
      lines.emplace_back(text);
    }
  }
  return lines;
}

LineReader::LineReader(string line) : line_(std::move(line)) {
  absl::StripTrailingAsciiWhitespace(&line_);
  Drop(0);
}

std::string_view LineReader::Peek() const {
  return std::string_view(line_).substr(at_, line_.find_first_of(" ,:|[]", at_) - at_);
}

string LineReader::Take() {
  string word(Peek());
  Expect(!word.empty());
  Drop(word.size());
  return word;
}

std::vector<string> LineReader::TakeWords() {
  std::vector<string> words;
  while (!Peek().empty()) words.push_back(Take());
  return words;
}

string LineReader::Rest() { return line_.substr(std::exchange(at_, line_.size())); }

bool LineReader::TakeIf(std::string_view word) {
  const bool next = Peek() == word;
  if (next) Drop(word.size());
  return next;
}

bool LineReader::TakeIf(char mark) {
  const bool next = !empty() && line_[at_] == mark;
  if (next) Drop(1);
  return next;
}

size_t LineReader::TakeNumber() {
  size_t number = 0;
  Expect(absl::SimpleAtoi(Take(), &number));
  return number;
}

OpKind LineReader::TakeKind() {
  const std::optional<OpKind> kind = OpFromName(Take());
  Expect(kind.has_value());
  return *kind;
}

Expression LineReader::TakeFormula() {
  std::string_view rest = std::string_view(line_).substr(at_);
  Expression formula = Expression::TakeFrom(rest);
  Drop(line_.size() - at_ - rest.size());
  return formula;
}

std::vector<Expression> LineReader::TakeFormulas() {
  std::vector<Expression> formulas = {TakeFormula()};
  while (TakeIf(',')) formulas.push_back(TakeFormula());
  return formulas;
}

void LineReader::Expect(bool holds) const {
  if (!holds) Bug(absl::StrCat("a text of a table or a statement: ", line_, "\nwrong here: ", line_.substr(at_)));
}

void LineReader::Drop(size_t size) { at_ = std::min(line_.find_first_not_of(' ', at_ + size), line_.size()); }

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
