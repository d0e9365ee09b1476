// The text of a formula, taken apart from its front: what the parsers of formulas (expression.cc, and
// planner/state/dialect/dialect_formula.cc) share. The first problem ends it: afterwards nothing more is taken.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/expression.h"

namespace planwright {

class FormulaReader {
 public:
  explicit FormulaReader(std::string_view text) : all_(text), rest_(text) {}

  std::string_view rest() const { return rest_; }
  std::optional<FormulaFault>& problem() { return problem_; }

 protected:
  // The next character that is no space; 0 at the end, and after a problem.
  char Next();
  // The word that comes next, behind spaces: letters, digits, _ and dots. Empty before a mark and at the end.
  std::string_view NextWord();
  bool TakeMark(char mark);  // whether it came next
  bool TakeWord(std::string_view word);
  char TakeOneOf(std::string_view marks);  // which of them came next; 0: none
  // Takes a part of the formula: a number, a name, an operation or a bracket. Of too many parts that is a problem.
  void Drop(size_t size);

  // The finite number that a word is; a problem if it is none.
  double NumberOf(std::string_view word);
  // The place of a name among the names of the formula, to which it is added.
  static int PlaceOfName(std::string name, std::vector<std::string>& names);

  void NeedOperand();  // a number or a name had to come
  size_t at() const { return all_.size() - rest_.size(); }
  void Fail(std::string message) { Fail(at(), std::move(message)); }
  void Fail(size_t at, std::string message);

 private:
  const std::string_view all_;
  std::string_view rest_;
  size_t parts_ = 0;
  std::optional<FormulaFault> problem_;
};

}  // namespace planwright
