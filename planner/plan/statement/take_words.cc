#include "planner/plan/statement/take_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/axis.h"

namespace planwright {
namespace {

using std::string;

bool IsName(std::string_view word) {
  const auto in_name = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
  return !word.empty() && absl::ascii_isalpha(static_cast<unsigned char>(word.front())) &&
         std::all_of(word.begin(), word.end(), in_name);
}

}  // namespace

string TakeName(LineReader& line, std::string_view what) {
  string name = line.Take(what);
  if (!line.failed()) CheckName(line, name);
  return name;
}

void CheckName(LineReader& line, std::string_view word) {
  line.Check(IsName(word), Cat(Quoted(word), " is no name: a name is letters, digits, _ and dots, a letter in front"));
}

bool IsLetterOfLayer(std::string_view word) {
  return word.size() == 1 && absl::ascii_isgraph(static_cast<unsigned char>(word.front()));
}

char TakeKindOfLayer(LineReader& line) {
  const string letter = line.Take("the letter of a kind of layers");
  line.Check(line.failed() || IsLetterOfLayer(letter), Cat(Quoted(letter), " is not the letter of a kind of layers"));
  return letter.empty() ? '\0' : letter.front();
}

int TakeDim(LineReader& line, size_t dims) {
  const size_t dim = line.TakeNumber();
  line.Check(line.failed() || dim < dims, Cat("there is no dim ", dim, ": dims count from 0, and there are ", dims));
  return line.failed() ? -1 : static_cast<int>(dim);
}

void RefuseAxis(LineReader& line) {
  const string word = line.Take("an axis");
  if (!line.failed()) line.RefuseWord(Cat(Quoted(word), " is no axis"), {"tp", "cp", "dp", "pp", "ep", "expert_tp"});
}

std::vector<string> TakeNames(LineReader& line) {
  line.Need('[');
  std::vector<string> names = line.TakeWords();
  line.Need(']');
  return names;
}

Expression TakeFormulaInBrackets(LineReader& line) {
  Expression formula = line.TakeFormula();
  if (line.failed()) return formula;
  const string& text = formula.text();
  int open = 0;
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] == '(') ++open;
    if (text[at] == ')') --open;
    line.Check(open > 0, Cat("a formula stands in brackets: expected (", text, ")"));
  }
  return formula;
}

std::vector<Expression> TakeFormulaList(LineReader& line) {
  line.Need('[');
  std::vector<Expression> formulas = line.TakeFormulas();
  line.Need(']');
  return formulas;
}

}  // namespace planwright
