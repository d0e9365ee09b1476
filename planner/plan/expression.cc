#include "planner/plan/expression.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

bool InName(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

void SkipSpace(std::string_view& rest) {
  while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.front()))) rest.remove_prefix(1);
}

char Next(std::string_view& rest) {
  SkipSpace(rest);
  return rest.empty() ? '\0' : rest.front();
}

}  // namespace

Expression::Expression(std::string_view text) : text_(text) {
  std::string_view rest = text_;
  Sum(rest);
  if (Next(rest) == '>') {
    rest.remove_prefix(1);
    Sum(rest);
    code_.push_back({'>'});
  }
  Require(Next(rest) == '\0', "formula " + text_ + " goes on at " + std::string(rest));
}

double Expression::Apply(char operation, double left, double right) {
  switch (operation) {
    case '+': return left + right;
    case '-': return left - right;
    case '*': return left * right;
    case '/': return left / right;
    default: return std::isnan(left) || std::isnan(right) ? std::nan("") : static_cast<double>(left > right);
  }
}

void Expression::Sum(std::string_view& rest) {
  Product(rest);
  for (char operation = Next(rest); operation == '+' || operation == '-'; operation = Next(rest)) {
    rest.remove_prefix(1);
    Product(rest);
    code_.push_back({operation});
  }
}

void Expression::Product(std::string_view& rest) {
  Operand(rest);
  for (char operation = Next(rest); operation == '*' || operation == '/'; operation = Next(rest)) {
    rest.remove_prefix(1);
    Operand(rest);
    code_.push_back({operation});
  }
}

void Expression::Operand(std::string_view& rest) {
  const char first = Next(rest);
  if (first == '(') {
    rest.remove_prefix(1);
    Sum(rest);
    Require(Next(rest) == ')', "formula " + text_ + " lacks a )");
    return rest.remove_prefix(1);
  }
  Require(first != '\0' && InName(first), "formula " + text_ + " lacks an operand");
  size_t end = 0;
  while (end < rest.size() && InName(rest[end])) ++end;
  if (std::isdigit(static_cast<unsigned char>(first))) {
    code_.push_back({0, -1, std::strtod(std::string(rest.substr(0, end)).c_str(), nullptr)});
    return rest.remove_prefix(end);
  }
  if (end < rest.size() && rest[end] == '(') {
    const size_t close = rest.find(')', end);
    Require(close != std::string_view::npos, "formula " + text_ + " lacks a )");
    end = close + 1;
  }
  const std::string name(rest.substr(0, end));
  const auto known = std::find(names_.begin(), names_.end(), name);
  code_.push_back({0, static_cast<int>(known - names_.begin())});
  if (known == names_.end()) names_.push_back(name);
  rest.remove_prefix(end);
}

}  // namespace planwright
