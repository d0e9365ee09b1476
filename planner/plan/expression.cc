#include "planner/plan/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

bool InName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

void SkipSpace(std::string_view& rest) {
  while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front()))) rest.remove_prefix(1);
}

// The next character that is no space; 0 at the end.
char Next(std::string_view& rest) {
  SkipSpace(rest);
  return rest.empty() ? '\0' : rest.front();
}

}  // namespace

Expression::Expression(std::string_view text) : Expression(TakeFrom(text)) {
  if (Next(text) != '\0') Bug("formula " + text_ + " has unexpected text: " + std::string(text));
}

Expression Expression::TakeFrom(std::string_view& text) {
  Expression formula;
  Next(text);
  formula.text_ = text;  // for messages
  const std::string_view begin = text;
  formula.ParseComparison(text);
  formula.text_ = begin.substr(0, begin.size() - text.size());
  while (formula.text_.ends_with(' ')) formula.text_.pop_back();  // parsing has looked for an operation behind it
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

// sum [> sum]. A sum is products with + and - between them; a product is operands with *, / and % between them.
void Expression::ParseComparison(std::string_view& rest) {
  ParseSum(rest);
  if (Next(rest) != '>') return;
  rest.remove_prefix(1);
  ParseSum(rest);
  code_.push_back({'>'});
}

void Expression::ParseSum(std::string_view& rest) {
  ParseProduct(rest);
  for (char operation = Next(rest); operation == '+' || operation == '-'; operation = Next(rest)) {
    rest.remove_prefix(1);
    ParseProduct(rest);
    code_.push_back({operation});
  }
}

void Expression::ParseProduct(std::string_view& rest) {
  ParseOperand(rest);
  for (char operation = Next(rest); operation == '*' || operation == '/' || operation == '%'; operation = Next(rest)) {
    rest.remove_prefix(1);
    ParseOperand(rest);
    code_.push_back({operation});
  }
}

void Expression::ParseOperand(std::string_view& rest) {
  const char first = Next(rest);
  if (first == '(') {
    rest.remove_prefix(1);
    ParseComparison(rest);
    if (Next(rest) != ')') Bug("formula " + text_ + " has an unclosed bracket");
    return rest.remove_prefix(1);
  }
  if (first == '\0' || !InName(first)) Bug("formula " + text_ + " has no operand where one is needed");
  size_t end = 0;
  while (end < rest.size() && InName(rest[end])) ++end;
  if (std::isdigit(static_cast<unsigned char>(first))) {
    code_.push_back({0, -1, std::strtod(std::string(rest.substr(0, end)).c_str(), nullptr)});
    return rest.remove_prefix(end);
  }
  if (end < rest.size() && rest[end] == '(') {  // "rows(o0)": the argument is a part of the name
    const size_t close = rest.find(')', end);
    if (close == std::string_view::npos) Bug("formula " + text_ + " has an unclosed bracket");
    end = close + 1;
  }
  const std::string name(rest.substr(0, end));
  // names_ has each name once, and the code refers to it by its index.
  const auto known = std::find(names_.begin(), names_.end(), name);
  code_.push_back({0, static_cast<int>(known - names_.begin())});
  if (known == names_.end()) names_.push_back(name);
  rest.remove_prefix(end);
}

}  // namespace planwright
