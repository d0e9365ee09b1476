// Formulas of ops.def and of the statements of models: "mamba.heads * mamba.head_dim / tp", "2 * elements(o0)",
// "cp > 1".
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// What is wrong with a formula, and at which byte of its text.
struct FormulaFault {
  size_t at = 0;
  std::string message;
};

// Numbers, names, + - * / > and parentheses, and % for the rest of a division. Evaluated in double: sizes are far below
// 2^53, so integers stay exact. A name may have one argument, as in "rows(o0)"; the whole of it is then the name.
class Expression {
 public:
  // The longest formula that `text` begins with, taken off it. None: there is a problem, and `text` stays as it was.
  static std::optional<Expression> TakeFrom(std::string_view& text, FormulaFault& problem);
  // All of the text as one formula; none if it is none.
  static std::optional<Expression> Parse(std::string_view text);
  // What stands in place of a formula that could not be read: it has no value (NaN).
  static Expression Nothing();

  const std::string& text() const { return text_; }
  // The names in the formula, each once.
  const std::vector<std::string>& names() const { return names_; }

  // `value_of(name)` gives the value of a name, as double. If a name has none it gives NaN, and the result is NaN. A
  // comparison gives 1 or 0.
  template <typename ValueOf>
  double Evaluate(const ValueOf& value_of) const {
    std::vector<double> stack;
    for (const Token& token : code_) {
      if (token.operation == 0) {
        stack.push_back(token.name >= 0 ? value_of(names_[static_cast<size_t>(token.name)]) : token.number);
        continue;
      }
      const double right = stack.back();
      stack.pop_back();
      stack.back() = Apply(token.operation, stack.back(), right);
    }
    return stack.back();
  }

 private:
  Expression() = default;

  struct Token {
    char operation = 0;  // 0: an operand
    int name = -1;       // index in names_; -1: a number
    double number = 0;
  };
  class Parser;

  static double Apply(char operation, double left, double right);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Token> code_;  // in reverse Polish order: operands before their operation
};

}  // namespace planwright
