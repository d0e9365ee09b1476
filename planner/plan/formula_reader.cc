#include "planner/plan/formula_reader.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

bool InWordOfFormula(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

char FormulaReader::Next() {
  if (problem_) return '\0';
  while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  return rest_.empty() ? '\0' : rest_.front();
}

std::string_view FormulaReader::NextWord() {
  if (Next() == '\0') return "";
  const auto* end = std::find_if_not(rest_.begin(), rest_.end(), InWordOfFormula);
  return rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
}

bool FormulaReader::TakeMark(char mark) {
  if (Next() != mark) return false;
  Drop(1);
  return true;
}

bool FormulaReader::TakeWord(std::string_view word) {
  if (NextWord() != word) return false;
  Drop(word.size());
  return true;
}

char FormulaReader::TakeOneOf(std::string_view marks) {
  const char next = Next();
  if (next == '\0' || marks.find(next) == std::string_view::npos) return '\0';
  Drop(1);
  return next;
}

void FormulaReader::Drop(size_t size) {
  if (problem_) return;
  if (++parts_ > kMostFormulaParts) return Fail(Cat("a formula has at most ", kMostFormulaParts, " parts"));
  rest_.remove_prefix(size);
}

double FormulaReader::NumberOf(std::string_view word) {
  double number = 0;
  if (!absl::SimpleAtod({word.data(), word.size()}, &number) || !std::isfinite(number))
    Fail(Cat(Quoted(word), " is no number"));
  return number;
}

int FormulaReader::PlaceOfName(std::string name, std::vector<std::string>& names) {
  const auto known = std::find(names.begin(), names.end(), name);
  const auto place = static_cast<int>(known - names.begin());
  if (known == names.end()) names.push_back(std::move(name));
  return place;
}

void FormulaReader::NeedOperand() {
  Fail(
      Cat("the formula needs a number or a name here, found ", rest_.empty() ? "the end" : Quoted(rest_.substr(0, 1))));
}

void FormulaReader::Fail(size_t at, std::string message) {
  if (!problem_) problem_ = FormulaFault{at, std::move(message)};
}

}  // namespace planwright
