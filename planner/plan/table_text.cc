#include "planner/plan/table_text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {

using std::string;

namespace {

constexpr size_t kPageColumns = 120;

absl::string_view Viewed(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

string ProblemsText(const TextProblems& problems) {
  string text;
  for (const auto& [where, message, from] : problems) {
    const auto line = [](string* out, const Location& each) { absl::StrAppend(out, each.line); };
    absl::StrAppend(&text, where.file ? *where.file : "", ":", where.line, ":", where.column, ": ", message);
    if (!from.empty())
      absl::StrAppend(&text, " (from line", from.size() > 1 ? "s " : " ", absl::StrJoin(from, ", ", line), ")");
    text += "\n";
  }
  return text;
}

// Whoever has just edited such a text reads this: it is told as other mistakes are, and nothing is to be reported. It
// may be the first use on any thread, so destructors do not run.
void BuiltInText(const TextProblems& problems) {
  if (problems.empty()) return;
  for (const TextProblem& problem : problems) std::fputs(Cat("error: ", ProblemsText({problem})).c_str(), stderr);
  std::fputs("help: this text is a part of the program: mend it where it stands, and build the program again\n",
             stderr);
  std::_Exit(kExitUsage);
}

TextLine::TextLine(std::shared_ptr<const string> file, int line, int column, std::string_view text)
    : file_(std::move(file)), text_(text), parts_({{0, line, column}}) {}

void TextLine::Continue(int line, int column, std::string_view text) {
  text_ += ' ';
  parts_.push_back({text_.size(), line, column});
  text_ += text;
}

Location TextLine::At(size_t at, size_t length) const {
  const auto behind = std::find_if(parts_.begin() + 1, parts_.end(), [&](const Part& part) { return part.begin > at; });
  const Part& part = *std::prev(behind);
  const size_t end = behind == parts_.end() ? text_.size() : behind->begin - 1;
  const size_t shown = std::max<size_t>(1, std::min(length, end - std::min(at, end)));
  return {file_, part.line, part.column + static_cast<int>(at - part.begin), static_cast<int>(shown)};
}

Location TextLine::AtWord(std::string_view word, std::string_view behind) const {
  constexpr std::string_view kEnds = " ,:|[]()=+-*/%>?";
  const auto ends = [&](size_t at) { return at >= text_.size() || kEnds.find(text_[at]) != std::string_view::npos; };
  const size_t from = text_.find(behind);
  for (size_t at = text_.find(word, from == string::npos ? 0 : from + behind.size());
       at != string::npos && !word.empty(); at = text_.find(word, at + 1)) {
    if ((at == 0 || ends(at - 1)) && ends(at + word.size())) return At(at, word.size());
  }
  return At(0, text_.size());
}

std::vector<TextLine> LogicalLines(std::string_view entry, std::shared_ptr<const string> file, TextProblems& problems) {
  std::vector<TextLine> lines;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(Viewed(entry), '\n')) {
    ++number;
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (text.empty() || text.front() == '#') continue;
    const int column = static_cast<int>(text.data() - line.data()) + 1;
    const std::string_view kept(text.data(), text.size());
    const bool continues = absl::StartsWith(line, "    ");
    if (continues && !lines.empty()) {
      lines.back().Continue(number, column, kept);
      continue;
    }
    TextLine& begun = lines.emplace_back(file, number, column, kept);
    if (continues)
      problems.push_back(
          {begun.At(0), "the line continues another one, by its four spaces, but none is before it", {}});
  }
  return lines;
}

LineReader::LineReader(std::shared_ptr<const TextLine> line) : line_(std::move(line)) { Drop(0); }

LineReader::LineReader(string line)
    : LineReader(std::make_shared<TextLine>(nullptr, 1, 1,
                                            std::string_view(line).substr(0, line.find_last_not_of(' ') + 1))) {}

std::string_view LineReader::Peek() const {
  return std::string_view(text()).substr(at_, text().find_first_of(" ,:|[]", at_) - at_);
}

bool LineReader::HasWord(std::string_view word) const {
  LineReader rest = *this;
  while (!rest.empty()) {
    if (rest.Peek() == word) return true;
    rest.Drop(std::max<size_t>(1, rest.Peek().size()));
  }
  return false;
}

string LineReader::Take(std::string_view what) {
  string word(Peek());
  Expect(!word.empty(), what);
  if (word.empty()) return word;
  last_ = at_;
  length_ = word.size();
  Drop(word.size());
  return word;
}

string LineReader::TakeOneOf(std::initializer_list<const char*> words) {
  const std::vector<string> known(words.begin(), words.end());
  const string wanted =
      absl::StrJoin(known, " or ", [](string* out, const string& word) { absl::StrAppend(out, "`", word, "`"); });
  string word = Take(wanted);
  if (!failed() && std::find(known.begin(), known.end(), word) == known.end())
    RefuseWord(absl::StrCat("expected ", wanted, ", found ", Quoted(word)), known);
  return word;
}

std::vector<string> LineReader::TakeWords() {
  std::vector<string> words;
  while (!Peek().empty()) words.push_back(Take());
  return words;
}

std::vector<string> LineReader::TakeWordsBefore(std::string_view end) {
  std::vector<string> words;
  while (!Peek().empty() && Peek() != end) words.push_back(Take());
  Need(end);
  return words;
}

string LineReader::Rest() { return text().substr(std::exchange(at_, text().size())); }

void LineReader::Skip(size_t size) {
  last_ = at_;
  length_ = std::max<size_t>(1, size);
  Drop(size);
}

bool LineReader::TakeIf(std::string_view word) {
  if (Peek() != word || word.empty()) return false;
  last_ = at_;
  length_ = word.size();
  Drop(word.size());
  return true;
}

bool LineReader::TakeIf(char mark) {
  const bool next = !empty() && text()[at_] == mark;
  if (next) Drop(1);
  return next;
}

size_t LineReader::TakeNumber() {
  const string word = Take("a number");
  int number = 0;  // no larger one has a meaning
  if (!failed()) Check(absl::SimpleAtoi(word, &number) && number >= 0, Cat(Quoted(word), " is no number from 0"));
  return failed() ? 0 : static_cast<size_t>(number);
}

OpKind LineReader::TakeKind() {
  const string word = Take("the name of an operation");
  const std::optional<OpKind> kind = OpFromName(word);
  if (!kind && !failed()) RefuseWord(Cat(Quoted(word), " is no operation"), AllOpNames());
  return kind.value_or(OpKind());
}

Expression LineReader::TakeFormula() {
  const std::string_view all = std::string_view(text()).substr(at_);
  std::string_view rest = all;
  FormulaFault problem;
  std::optional<Expression> formula = Expression::TakeFrom(rest, problem);
  if (!formula) {
    Fail(at_ + problem.at, 1, problem.message);
    return Expression::Nothing();
  }
  last_ = at_;
  length_ = formula->text().size();
  Drop(all.size() - rest.size());
  return *std::move(formula);
}

std::vector<Expression> LineReader::TakeFormulas() {
  std::vector<Expression> formulas = {TakeFormula()};
  while (TakeIf(',')) formulas.push_back(TakeFormula());
  return formulas;
}

void LineReader::Need(std::string_view word) { Expect(TakeIf(word), Cat("`", word, "`")); }

void LineReader::Need(char mark) { Expect(TakeIf(mark), Cat("`", string(1, mark), "`")); }

void LineReader::NeedEnd() { Expect(empty(), "the end of the line"); }

void LineReader::Expect(bool holds, std::string_view wanted) {
  if (!holds) Fail(at_, std::max<size_t>(1, Peek().size()), Cat("expected ", wanted, ", found ", Found()));
}

void LineReader::Check(bool holds, std::string_view message) {
  if (!holds) Fail(last_, length_, string(message));
}

void LineReader::RefuseWord(std::string_view message, const std::vector<string>& known) {
  const string near = NearNameHelp(std::string_view(text()).substr(last_, length_), known);
  Fail(last_, length_, near.empty() ? string(message) : Cat(message, "; ", near));
}

void LineReader::Fail(size_t at, size_t length, string message) {
  if (failed()) return;
  problem_ = TextProblem{line_->At(at, length), std::move(message), {}};
  at_ = text().size();
}

string LineReader::Found() const {
  if (empty()) return "the end of the line";
  return Quoted(Peek().empty() ? std::string_view(text()).substr(at_, 1) : Peek());
}

void LineReader::Drop(size_t size) { at_ = std::min(text().find_first_not_of(' ', at_ + size), text().size()); }

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
