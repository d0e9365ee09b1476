// Formulas of the table of operations: "mamba.heads * mamba.head_dim / tp", "2 * elements(o0) * last(i0)", "cp > 1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// Numbers, names, + - * / > and parentheses, evaluated in double: sizes are far below 2^53, so integers stay exact. A
// name may be a call of one argument, "rows(o0)", which is a name like any other.
class Expression {
 public:
  explicit Expression(std::string_view text);  // one that does not parse is a bug: the texts are our own

  const std::string& text() const { return text_; }
  // Every name, each once.
  const std::vector<std::string>& names() const { return names_; }

  // `value_of(name)`: a double; NaN makes the result NaN.
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
  struct Token {
    char operation = 0;  // 0: an operand
    int name = -1;       // index in names_; -1: a number
    double number = 0;
  };

  static double Apply(char operation, double left, double right);
  void Sum(std::string_view& rest);
  void Product(std::string_view& rest);
  void Operand(std::string_view& rest);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Token> code_;  // operands before their operation
};

}  // namespace planwright
