#include "tests/plan/statement/any_statement.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/built_in_kinds.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/piece_flops.h"
#include "planner/plan/statement/prime_module.h"
#include "planner/plan/statement/statement_problems.h"

namespace planwright::testing {
namespace {

using std::string;

constexpr const char* kEdges[] = {"",    "0",    "1",      "-1", "4294967296", "9e999", "nan", "x",    "x*",     "y?",
                                  ":",   "[",    "]",      ",",  "(",          ")",     "=",   "/ 0",  "% 0",    "> 1",
                                  "cut", "each", "joined", "tp", "when",       "    ",  "#",   "\xff", "sqrt(x)"};

class Damage {
 public:
  explicit Damage(std::mt19937& random) : random_(random) {}

  string Of(const string& text) {
    std::vector<string> lines = absl::StrSplit(text, '\n');
    for (size_t changes = 1 + Below(3); changes > 0 && !lines.empty(); --changes) Change(lines);
    return absl::StrJoin(lines, "\n");
  }

 private:
  size_t Below(size_t bound) { return random_() % bound; }

  void Change(std::vector<string>& lines) {
    const size_t at = Below(lines.size());
    switch (Below(8)) {
      case 0: lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at)); break;
      case 1: lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[Below(lines.size())]); break;
      case 2: std::swap(lines[at], lines[Below(lines.size())]); break;
      case 3: ChangeCharacter(lines[at]); break;
      default: ChangeWord(lines[at], lines[Below(lines.size())]); break;
    }
  }

  void ChangeCharacter(string& line) {
    const size_t at = Below(line.size() + 1);
    const char other = static_cast<char>(Below(256));
    if (at == line.size() || Below(3) == 0) {
      line.insert(at, 1, other);
    } else if (Below(2) == 0) {
      line.erase(at, 1);
    } else {
      line[at] = other;
    }
  }

  void ChangeWord(string& line, const string& from) {
    std::vector<string> words = absl::StrSplit(line, ' ');
    const std::vector<string> others = absl::StrSplit(from, ' ');
    string& word = words[Below(words.size())];
    switch (Below(4)) {
      case 0: word = kEdges[Below(std::size(kEdges))]; break;
      case 1: std::swap(word, words[Below(words.size())]); break;
      case 2: word += " " + others[Below(others.size())]; break;
      default: word = others[Below(others.size())]; break;
    }
    line = absl::StrJoin(words, " ");
  }

  std::mt19937& random_;
};

}  // namespace

std::vector<string> StatementTexts() {
  std::vector<string> texts;
  for (const KindText& kind : BuiltInKinds()) texts.emplace_back(kind.text.substr(0, kind.text.find("\ndialect ")));
  return texts;
}

string DamagedText(const string& text, std::mt19937& random) { return Damage(random).Of(text); }

bool TryStatement(const string& text) {
  const ParsedStatement parsed = ParseStatement("any.model", text);
  TextProblems problems = StatementProblems(parsed.statement);
  problems.insert(problems.end(), parsed.problems.begin(), parsed.problems.end());
  const std::vector<string> lines = absl::StrSplit(text, '\n');
  for (const TextProblem& problem : problems) {
    const Location& where = problem.where;
    const bool in_text = where.line >= 1 && static_cast<size_t>(where.line) <= lines.size() && where.column >= 1 &&
                         static_cast<size_t>(where.column) <= lines[static_cast<size_t>(where.line) - 1].size() + 1;
    Require(in_text && where.file && *where.file == "any.model", "no place of the text: " + ProblemsText({problem}));
    Require(!problem.message.empty() && IsPrintable(problem.message), "no message: " + problem.message);
  }
  if (!problems.empty()) return false;
  Module module = PrimeModule(parsed.statement, 1);
  const ModelNumbers numbers({.micro_samples = 1, .sequence_length = 64}, module, parsed.statement);
  for (const auto& [name, piece] : PiecesOf(parsed.statement))
    FlopsOf(parsed.statement, *piece, module, numbers, {}, 64);
  return true;
}

}  // namespace planwright::testing
