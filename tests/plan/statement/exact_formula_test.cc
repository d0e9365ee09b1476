// Exact formulas: against numbers that are known, and against doubles wherever these are exact.
#include "planner/plan/statement/exact_formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

std::optional<int64_t> Value(std::string_view name) {
  if (name == "a") return 64;
  if (name == "b") return 49;
  if (name == "zero") return 0;
  return std::nullopt;
}

ExactNumber Exact(const std::string& text) { return ExactlyDown(*Expression::Parse(text), Value); }

TEST(ExactFormula, IsRoundedDownOnceAndAtTheEnd) {
  const std::pair<const char*, int64_t> cases[] = {{"a / b * b", 64},      {"1 / 3 + 1 / 3 + 1 / 3", 1},
                                                   {"7 / 2 * 2", 7},       {"7 / 2", 3},
                                                   {"(0 - 7) / 2", -4},    {"0.1 * 3 * 10", 3},
                                                   {"a / b * b % 64", 0},  {"a % b", 15},
                                                   {"2.5 % 1 * 4", 2},     {"a - b > 14", 1},
                                                   {"a / b > 64 / 49", 0}, {"1e3 + 1", 1001},
                                                   {"4 * (a + 1)", 260},   {"(0 - 7) % 4", -3}};
  for (const auto& [text, number] : cases) EXPECT_EQ(Exact(text).number, number) << text;
}

TEST(ExactFormula, WhatHasNoNumberSaysWhy) {
  EXPECT_EQ(Exact("a / 0").problem, "`/ 0` divides by 0");
  EXPECT_EQ(Exact("1 + a % (b - 49) * 2").problem, "`% (b - 49)` divides by 0");
  EXPECT_EQ(Exact("a / zero / zero").problem, "`/ zero` divides by 0");
  EXPECT_EQ(Exact("a * 1000000000000000000").problem, "`a * 1000000000000000000` is beyond 64 bits");
  EXPECT_EQ(Exact("1 / (a * 1000000000000000000)").problem, "`1 / (a * 1000000000000000000)` is beyond 64 bits");
  for (const char* text : {"a / 0", "a * 1000000000000000000", "c", "a / c", "c / 0", "a % (c - c)", "c > 1"})
    EXPECT_FALSE(Exact(text).number) << text;
  for (const char* text : {"c", "a / c", "a % (c - c)", "c > 1"}) EXPECT_EQ(Exact(text).problem, "") << text;
}

// Denominators are powers of two, so doubles are exact.
std::string Some(std::mt19937& random, int depth) {
  const char* leaves[] = {"a", "b", "3", "8", "0.5", "zero"};
  if (depth == 0 || random() % 4 == 0) return leaves[random() % 6];
  if (random() % 5 == 0) return absl::StrCat("(", Some(random, depth - 1), ") / 4");
  const char* marks[] = {" + ", " - ", " * ", " % ", " > "};
  return absl::StrCat("(", Some(random, depth - 1), marks[random() % 5], Some(random, depth - 1), ")");
}

TEST(ExactFormula, IsTheDoubleWhereThatIsExact) {
  std::mt19937 random(5);
  int equal = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string text = Some(random, 4);
    const double number =
        Expression::Parse(text)->Evaluate([](std::string_view name) { return static_cast<double>(*Value(name)); });
    if (std::isfinite(number) && std::fabs(number) > 1e15) continue;
    const ExactNumber exact = Exact(text);
    EXPECT_EQ(exact.number.has_value(), std::isfinite(number)) << text << ": " << exact.problem;
    if (!exact.number) continue;
    EXPECT_EQ(static_cast<double>(*exact.number), std::floor(number)) << text;
    ++equal;
  }
  EXPECT_GT(equal, 3000);
}

}  // namespace
}  // namespace planwright
