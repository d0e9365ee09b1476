// Formulas of ops.def: "mamba.heads * mamba.head_dim / tp", "2 * elements(o0) * last(i0)", "cp > 1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// Numbers, names, + - * / > and parentheses, and % for the rest of a division. Evaluated in double: sizes are far below
// 2^53, so integers stay exact. A name may have one argument, as in "rows(o0)"; the whole of it is then the name.
class Expression {
 public:
  explicit Expression(std::string_view text);  // a bug if it does not parse: formulas are in our own sources
  // The longest formula that `text` begins with, taken off it.
  static Expression TakeFrom(std::string_view& text);

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

  static double Apply(char operation, double left, double right);
  // A recursive descent parser. Each takes its part off the front of `rest` and appends to code_.
  void ParseComparison(std::string_view& rest);
  void ParseSum(std::string_view& rest);
  void ParseProduct(std::string_view& rest);
  void ParseOperand(std::string_view& rest);

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Token> code_;  // in reverse Polish order: operands before their operation
};

}  // namespace planwright
