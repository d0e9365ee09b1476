#include "planner/plan/statement/exact_formula.h"

#include <cctype>
#include <cmath>
#include <numeric>
#include <utility>

#include "planner/base/text/bug.h"
#include "planner/base/text/text.h"
#include "planner/plan/formula_reader.h"

namespace planwright {
namespace {

// In lowest terms, with a denominator above 0.
struct Fraction {
  int64_t over = 0, under = 1;
};

int64_t FloorOf(const Fraction& number) {
  const int64_t down = number.over / number.under;
  return number.over % number.under < 0 ? down - 1 : down;
}

// Computes while it reads. The formula is known to be right.
class ExactReader : public FormulaReader {
 public:
  ExactReader(std::string_view text, const std::function<std::optional<int64_t>(std::string_view)>& value_of)
      : FormulaReader(text), text_(text), value_of_(value_of) {}

  Fraction Comparison() {
    const Fraction left = Sum();
    if (!TakeMark('>')) return left;
    return {Added(left, Negative(Sum())).over > 0 ? 1 : 0, 1};
  }

  bool unknown() const { return unknown_; }

 private:
  Fraction Sum() {
    Fraction sum = Product();
    for (char mark = TakeOneOf("+-"); mark != 0; mark = TakeOneOf("+-")) {
      const Fraction right = Product();
      sum = Added(sum, mark == '+' ? right : Negative(right));
    }
    return sum;
  }

  Fraction Product() {
    Fraction product = Operand();
    for (char mark = TakeOneOf("*/%"); mark != 0; mark = TakeOneOf("*/%")) {
      const size_t from = at();
      const Fraction right = Operand();
      if (mark == '*') {
        product = Times(product, right);
      } else if (right.over != 0) {
        product = mark == '/' ? Times(product, Inverse(right)) : Rest(product, right);
      } else {
        if (!unknown_) Fail(Cat("`", std::string(1, mark), text_.substr(from, at() - from), "` divides by 0"));
        return {};
      }
    }
    return product;
  }

  Fraction Operand() {
    const char first = Next();
    if (problem()) return {};
    if (first == '(') {
      Drop(1);
      const Fraction inner = Comparison();
      TakeMark(')');
      return inner;
    }
    const std::string_view word = NextWord();
    Drop(word.size());
    if (std::isdigit(static_cast<unsigned char>(first))) return Decimal(word);
    const std::optional<int64_t> value = value_of_(word);
    if (!value) unknown_ = true;
    return {value.value_or(1), 1};
  }

  // "24", "0.5"; with an exponent as a double has it.
  Fraction Decimal(std::string_view word) {
    Fraction number;
    bool behind_dot = false;
    for (const char c : word) {
      if (c == '.') {
        behind_dot = true;
      } else if (!std::isdigit(static_cast<unsigned char>(c))) {
        const double whole = NumberOf(word);
        if (whole != std::floor(whole) || !(std::fabs(whole) < 1e18)) Fail(Cat("`", word, "` is no whole number"));
        return problem() ? Fraction() : Fraction{static_cast<int64_t>(whole), 1};
      } else {
        number.over = Checked(number.over, 10, c - '0');
        if (behind_dot) number.under = Checked(number.under, 10, 0);
      }
    }
    return Lowest(number);
  }

  Fraction Added(const Fraction& one, const Fraction& other) {
    const int64_t common = std::gcd(one.under, other.under);
    const int64_t over = Checked(one.over, other.under / common, Checked(other.over, one.under / common, 0));
    return Lowest({over, Checked(one.under, other.under / common, 0)});
  }

  Fraction Times(const Fraction& one, const Fraction& other) {
    const Fraction left = Lowest({one.over, other.under}), right = Lowest({other.over, one.under});
    return {Checked(left.over, right.over, 0), Checked(left.under, right.under, 0)};
  }

  // What a division leaves, with the sign of what is divided, as std::fmod has it.
  Fraction Rest(const Fraction& whole, const Fraction& by) {
    const Fraction times = Times(whole, Inverse(by));
    return Added(whole, Negative(Times({times.over / times.under, 1}, by)));
  }

  static Fraction Negative(const Fraction& number) { return {-number.over, number.under}; }

  static Fraction Inverse(const Fraction& number) {
    return number.over < 0 ? Fraction{-number.under, -number.over} : Fraction{number.under, number.over};
  }

  static Fraction Lowest(const Fraction& number) {
    const int64_t common = std::gcd(number.over, number.under);
    return common == 0 ? Fraction() : Fraction{number.over / common, number.under / common};
  }

  // one * other + plus. Beyond 64 bits that is a problem, and the number is 1, by which all can be divided.
  int64_t Checked(int64_t one, int64_t other, int64_t plus) {
    int64_t product = 0, sum = 0;
    if (!__builtin_mul_overflow(one, other, &product) && !__builtin_add_overflow(product, plus, &sum) &&
        sum != INT64_MIN)
      return sum;
    Fail(Cat("`", text_, "` is beyond 64 bits"));
    return 1;
  }

  const std::string_view text_;
  const std::function<std::optional<int64_t>(std::string_view)>& value_of_;
  bool unknown_ = false;  // a name has no value
};

}  // namespace

ExactNumber ExactlyDown(const Expression& formula,
                        const std::function<std::optional<int64_t>(std::string_view)>& value_of) {
  ExactReader reader(formula.text(), value_of);
  const Fraction value = reader.Comparison();
  if (reader.unknown()) return {};
  if (reader.problem()) return {std::nullopt, std::move(reader.problem()->message)};
  Require(reader.rest().empty(), "a formula was read as a whole");
  return {FloorOf(value), ""};
}

}  // namespace planwright
