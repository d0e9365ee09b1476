// Formulas of dialects: what they evaluate to, and what is none.
#include "planner/state/dialect/dialect_formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace planwright {
namespace {

using ::testing::ElementsAre;

// The numbers a = 6, b = 4, yes = 1 and no = 0; what `given` asks for is there of `a` alone.
double NumberOf(const std::string& text) {
  LineReader line(text);
  const DialectFormula formula = DialectFormula::Take(line);
  line.NeedEnd();
  EXPECT_FALSE(line.failed()) << text << ": " << line.problem()->message;
  const std::map<std::string, double> numbers = {{"a", 6},        {"b", 4},   {"yes", 1}, {"no", 0},
                                                 {"given(a)", 1}, {"x.y", 7}, {"i", 5},   {"i in odd", 1}};
  return formula.Evaluate([&](const std::string& name) {
    const auto found = numbers.find(name);
    return found == numbers.end() ? std::nan("") : found->second;
  });
}

std::string FormulaProblem(const std::string& text) {
  LineReader line(text);
  DialectFormula::Take(line);
  return line.failed() ? std::to_string(line.problem()->where.column) + " " + line.problem()->message : "";
}

TEST(DialectFormula, HasTheArithmeticOfStatements) {
  EXPECT_EQ(NumberOf("a + b * 2 - 1"), 13);
  EXPECT_EQ(NumberOf("(a + b) / 4"), 2.5);
  EXPECT_EQ(NumberOf("a % b"), 2);
  EXPECT_EQ(NumberOf("x.y"), 7);
  EXPECT_EQ(NumberOf("1e-6 * 1e6"), 1);
  EXPECT_TRUE(std::isnan(NumberOf("a + nothing")));
}

TEST(DialectFormula, HasConditions) {
  EXPECT_EQ(NumberOf("a > b"), 1);
  EXPECT_EQ(NumberOf("a < b"), 0);
  EXPECT_EQ(NumberOf("a = 6"), 1);
  EXPECT_EQ(NumberOf("yes and no or yes"), 1);
  EXPECT_EQ(NumberOf("not yes or no"), 0);
  EXPECT_EQ(NumberOf("not a = b and yes"), 1);
  EXPECT_EQ(NumberOf("a > b ? a : b"), 6);
  EXPECT_EQ(NumberOf("no ? 1 : yes ? 2 : 3"), 2);
  EXPECT_EQ(NumberOf("yes ? a : nothing"), 6) << "what is not chosen may have no value";
  EXPECT_EQ(NumberOf("given(a)"), 1);
  EXPECT_EQ(NumberOf("i in odd and (i + 1) % b = 2"), 1);
  EXPECT_EQ(NumberOf("not i in odd"), 0);
  // A condition of what has no value does not hold, and neither does its opposite.
  for (const char* text : {"nothing = nothing", "not nothing > 1", "nothing or yes", "nothing ? 1 : 2"})
    EXPECT_TRUE(std::isnan(NumberOf(text))) << text;
}

TEST(DialectFormula, HasFunctions) {
  EXPECT_EQ(NumberOf("floor(a / b)"), 1);
  EXPECT_EQ(NumberOf("sqrt(b) + log(1)"), 2);
  EXPECT_EQ(NumberOf("min(a, b) + max(a, b + 1)"), 10);
}

// transformers computes a width as int(hidden * ratio).
TEST(DialectFormula, ARatioGivesBackWhatItWasMadeOf) {
  EXPECT_EQ(NumberOf("ratio(a, b)"), 1.5);
  int rounded = 0;
  for (int whole = 1; whole < 200; ++whole) {
    for (int part = 1; part < 800; part += 3) {
      const double ratio = NumberOf("ratio(" + std::to_string(part) + ", " + std::to_string(whole) + ")");
      ASSERT_EQ(std::floor(whole * ratio), part) << part << " / " << whole;
      rounded += std::floor(whole * (static_cast<double>(part) / whole)) == part ? 0 : 1;
    }
  }
  EXPECT_GT(rounded, 0) << "the quotient alone does not always give it back";
}

TEST(DialectFormula, EndsWhereNothingOfItFollows) {
  LineReader line("frames x 3 * patch");
  const DialectFormula formula = DialectFormula::Take(line);
  EXPECT_EQ(formula.text(), "frames");
  EXPECT_EQ(line.Left(), "x 3 * patch");
  LineReader text("a + given(b) loose: what");
  EXPECT_THAT(DialectFormula::Take(text).names(), ElementsAre("a", "given(b)"));
  EXPECT_EQ(text.Left(), "loose: what");
}

TEST(DialectFormula, TellsWhereItIsWrong) {
  EXPECT_EQ(FormulaProblem("a + * b"), "5 the formula needs a number or a name here, found \"*\"");
  EXPECT_EQ(FormulaProblem("(a + b"), "7 the bracket of the formula is not closed");
  EXPECT_EQ(FormulaProblem("min(a)"), "6 min has 2 arguments");
  EXPECT_EQ(FormulaProblem("cosine(a)"), "1 \"cosine\" is no function");
  EXPECT_EQ(FormulaProblem("1x"), "1 \"1x\" is no number");
  EXPECT_EQ(FormulaProblem("a ? b"), "6 the formula needs a `:` here, and what holds if the condition does not");
  EXPECT_EQ(FormulaProblem(std::string(100, '(')), "65 a formula has at most 64 parts");
}

}  // namespace
}  // namespace planwright
