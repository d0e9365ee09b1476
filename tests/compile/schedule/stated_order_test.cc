// The order that a statement gives instructions: what it moves, what stays beside what, and what it must not do.
#include "planner/compile/schedule/derive/stated_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace planwright {
namespace {

using ::testing::ElementsAre;

// n -> a = gelu n and b = squared_relu n, each from n alone; accumulate a; an addition to a gradient before b.
struct Steps {
  DerivedPiece piece;
  std::vector<DerivedStep> steps;

  Steps() {
    const size_t x = Value("x"), n = Value("n"), a = Value("a"), b = Value("b");
    steps = {{.kind = OpKind::kRmsNorm, .inputs = {x}, .outputs = {n}},
             {.kind = OpKind::kGelu, .inputs = {n}, .outputs = {a}},
             {.kind = OpKind::kAccumulate, .inputs = {a}},
             {.kind = OpKind::kLinearWeightGrad, .inputs = {n}, .gradients = {"up"}},
             {.kind = OpKind::kSquaredRelu, .inputs = {n}, .outputs = {b}}};
  }
  size_t Value(const char* name) { return piece.Add({.name = name, .stated = name}); }

  std::vector<std::string> In(const std::vector<std::string>& entries) {
    PutInOrder(entries, piece, steps);
    std::vector<std::string> kinds;
    for (const DerivedStep& step : steps) kinds.emplace_back(OpName(step.kind));
    return kinds;
  }
};

TEST(StatedOrder, WhatMakesNoValueStaysBesideWhatDoes) {
  EXPECT_THAT(Steps().In({"rms_norm", "squared_relu", "gelu"}),
              ElementsAre("rms_norm", "linear_weight_grad", "squared_relu", "gelu", "accumulate"));
}

TEST(StatedOrder, AnEntryOfAValueComesBeforeThatOfItsKind) {
  EXPECT_THAT(Steps().In({"gelu.n", "rms_norm", "squared_relu.b", "gelu", "squared_relu"}),
              ElementsAre("rms_norm", "linear_weight_grad", "squared_relu", "gelu", "accumulate"));
}

TEST(StatedOrder, AValueIsMadeBeforeItIsRead) {
  EXPECT_DEATH(Steps().In({"gelu", "rms_norm", "squared_relu"}), "reads n before it is made");
}

TEST(StatedOrder, EveryInstructionThatMakesAValueHasAnEntry) {
  EXPECT_DEATH(Steps().In({"rms_norm", "gelu", "squared_relu.a"}), "lacks squared_relu.b");
}

}  // namespace
}  // namespace planwright
