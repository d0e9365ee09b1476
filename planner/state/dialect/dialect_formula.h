// Formulas of dialects. They have more than those of statements (planner/plan/expression.h), as what others publish is
// less regular: conditions, choices and a few functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/table_text.h"

namespace planwright {

// The number of a block, in conditions of lines `place`, and what the name "i in LIST" begins with.
inline constexpr std::string_view kBlockNumber = "i", kBlockIsIn = "i in ";

// Numbers, names, + - * / %, = < >, `and`, `or`, `not`, `CONDITION ? A : B`, parentheses, and the functions floor,
// sqrt, log, min, max and ratio. ratio(a, b) is the least double r from a / b on by which floor(b * r) is a. Conditions
// are 1 or 0. `given(NAME)` and `i in NAME` are names as a whole. Evaluated in double, as statements are.
class DialectFormula {
 public:
  // The longest formula that the line begins with. It has no value if there is none, and the line has failed.
  static DialectFormula Take(LineReader& line);

  const std::string& text() const { return text_; }
  // The names in the formula, each once. Of "given(a)" it is that.
  const std::vector<std::string>& names() const { return names_; }

  // `value_of(name)`: the number of a name; NaN if it has none, and the result is then NaN.
  template <typename ValueOf>
  double Evaluate(const ValueOf& value_of) const {
    std::vector<double> stack;
    for (const Token& token : code_) {
      if (token.operation == 0) {
        stack.push_back(token.name >= 0 ? value_of(names_[static_cast<size_t>(token.name)]) : token.number);
      } else {
        Apply(token.operation, stack);
      }
    }
    return stack.back();
  }

 private:
  class Parser;
  struct Token {
    char operation = 0;  // 0: an operand
    int name = -1;       // index in names_; -1: a number
    double number = 0;
  };

  static void Apply(char operation, std::vector<double>& stack);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Token> code_;  // in reverse Polish order: operands before their operation
};

}  // namespace planwright
