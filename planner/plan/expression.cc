#include "planner/plan/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

bool InName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

// A recursive descent parser. Each function takes its part off the front and appends to the code. Once there is a
// problem, nothing more is taken.
class Expression::Parser {
 public:
  Parser(std::string_view text, Expression& formula) : all_(text), rest_(text), formula_(formula) {}

  // sum [> sum]. A sum is products with + and - between them; a product is operands with *, / and % between them.
  void Comparison() {
    Sum();
    if (Next() != '>') return;
    Drop(1);
    Sum();
    formula_.code_.push_back({'>'});
  }

  std::string_view rest() const { return rest_; }
  std::optional<FormulaFault>& problem() { return problem_; }

 private:
  void Sum() {
    Product();
    for (char operation = Next(); operation == '+' || operation == '-'; operation = Next()) {
      Drop(1);
      Product();
      formula_.code_.push_back({operation});
    }
  }

  void Product() {
    Operand();
    for (char operation = Next(); operation == '*' || operation == '/' || operation == '%'; operation = Next()) {
      Drop(1);
      Operand();
      formula_.code_.push_back({operation});
    }
  }

  void Operand() {
    const char first = Next();
    if (problem_) return;
    if (first == '(') {
      const size_t open = all_.size() - rest_.size();
      Drop(1);
      Comparison();
      if (Next() == ')') return Drop(1);
      return Fail(open, "the bracket of the formula is not closed");
    }
    if (first == '\0' || !InName(first)) return Fail(Cat("the formula needs a number or a name here, found ", Found()));
    const size_t end = EndOfName();
    const std::string_view word = rest_.substr(0, end);
    if (std::isdigit(static_cast<unsigned char>(first))) return Number(word);
    size_t size = end;
    if (end < rest_.size() && rest_[end] == '(') {  // "rows(o0)": the argument is a part of the name
      const size_t close = rest_.find(')', end);
      if (close == std::string_view::npos) return Fail("the bracket behind this name is not closed");
      size = close + 1;
    }
    Name(std::string(rest_.substr(0, size)));
    Drop(size);
  }

  void Number(std::string_view word) {
    double number = 0;
    if (!absl::SimpleAtod({word.data(), word.size()}, &number) || !std::isfinite(number))
      return Fail(Cat(Quoted(word), " is no number"));
    formula_.code_.push_back({0, -1, number});
    Drop(word.size());
  }

  // names_ has each name once, and the code refers to it by its index.
  void Name(std::string name) {
    std::vector<std::string>& names = formula_.names_;
    const auto known = std::find(names.begin(), names.end(), name);
    formula_.code_.push_back({0, static_cast<int>(known - names.begin())});
    if (known == names.end()) names.push_back(std::move(name));
  }

  // The next character that is no space; 0 at the end, and after a problem.
  char Next() {
    if (problem_) return '\0';
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }

  size_t EndOfName() const {
    return static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), InName) - rest_.begin());
  }

  // Takes a part of the formula: a number, a name, an operation or a bracket.
  void Drop(size_t size) {
    if (problem_) return;
    if (++parts_ > kMostFormulaParts) return Fail(Cat("a formula has at most ", kMostFormulaParts, " parts"));
    rest_.remove_prefix(size);
  }

  std::string Found() const { return rest_.empty() ? "the end" : Quoted(rest_.substr(0, 1)); }

  void Fail(std::string message) { Fail(all_.size() - rest_.size(), std::move(message)); }
  void Fail(size_t at, std::string message) {
    if (!problem_) problem_ = FormulaFault{at, std::move(message)};
  }

  const std::string_view all_;
  std::string_view rest_;
  Expression& formula_;
  size_t parts_ = 0;
  std::optional<FormulaFault> problem_;
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
