#include "planner/plan/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/plan/formula_reader.h"

namespace planwright {

// A recursive descent parser. Each function takes its part off the front and appends to the code.
class Expression::Parser : public FormulaReader {
 public:
  Parser(std::string_view text, Expression& formula) : FormulaReader(text), formula_(formula) {}

  // sum [> sum]. A sum is products with + and - between them; a product is operands with *, / and % between them.
  void Comparison() {
    Sum();
    if (!TakeMark('>')) return;
    Sum();
    formula_.code_.push_back({'>'});
  }

 private:
  void Sum() {
    Product();
    for (char mark = TakeOneOf("+-"); mark != 0; mark = TakeOneOf("+-")) {
      Product();
      formula_.code_.push_back({mark});
    }
  }

  void Product() {
    Operand();
    for (char mark = TakeOneOf("*/%"); mark != 0; mark = TakeOneOf("*/%")) {
      Operand();
      formula_.code_.push_back({mark});
    }
  }

  void Operand() {
    const char first = Next();
    if (problem()) return;
    if (first == '(') {
      const size_t open = at();
      Drop(1);
      Comparison();
      if (!TakeMark(')')) Fail(open, "the bracket of the formula is not closed");
      return;
    }
    const std::string_view word = NextWord();
    if (word.empty()) return NeedOperand();
    if (std::isdigit(static_cast<unsigned char>(first))) {
      formula_.code_.push_back({0, -1, NumberOf(word)});
      return Drop(word.size());
    }
    size_t size = word.size();
    if (size < rest().size() && rest()[size] == '(') {  // "rows(o0)": the argument is a part of the name
      const size_t close = rest().find(')', size);
      if (close == std::string_view::npos) return Fail("the bracket behind this name is not closed");
      size = close + 1;
    }
    formula_.code_.push_back({0, PlaceOfName(std::string(rest().substr(0, size)), formula_.names_)});
    Drop(size);
  }

  Expression& formula_;
};

std::optional<Expression> Expression::TakeFrom(std::string_view& text, FormulaFault& problem) {
  Expression formula;
  Parser parser(text, formula);
  parser.Comparison();
  if (parser.problem()) {
    problem = *std::exchange(parser.problem(), std::nullopt);
    return std::nullopt;
  }
  const std::string_view read = text.substr(0, text.size() - parser.rest().size());
  const size_t begin = std::min(read.find_first_not_of(' '), read.size());
  // Parsing has looked for an operation behind it.
  formula.text_ = read.substr(begin, read.find_last_not_of(' ') + 1 - begin);
  text = parser.rest();
  return formula;
}

std::optional<Expression> Expression::Parse(std::string_view text) {
  FormulaFault problem;
  std::optional<Expression> formula = TakeFrom(text, problem);
  return text.empty() ? formula : std::nullopt;
}

Expression Expression::Nothing() {
  Expression formula;
  formula.code_.push_back({0, -1, std::numeric_limits<double>::quiet_NaN()});
  return formula;
}

double Expression::Apply(char operation, double left, double right) {
  switch (operation) {
    case '+': return left + right;
    case '-': return left - right;
    case '*': return left * right;
    case '/': return left / right;
    case '%': return std::fmod(left, right);
    default:  // '>': comparing NaN would give 0, and hide that a name has no value
      return std::isnan(left) || std::isnan(right) ? std::nan("") : static_cast<double>(left > right);
  }
}

}  // namespace planwright
