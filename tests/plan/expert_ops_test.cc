#include "planner/plan/expert_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

TEST(ExpertOps, RoutersAreThoseThatMakeChoices) {
  std::vector<std::string> routers;
  for (const OpInfo& info : AllOps()) {
    const std::optional<size_t> choices = ChoicesOf(info.kind);
    if (choices) routers.push_back(std::string(info.name) + " " + std::to_string(*choices));
  }
  EXPECT_THAT(routers, ElementsAre("route 1", "route_softmax 1"));
}

TEST(ExpertOps, ExpertsAndTheirBackwardReadRowsBesideWeights) {
  std::vector<std::string> experts;
  for (const OpInfo& info : AllOps()) {
    if (UsesExpertWeights(info.kind)) experts.emplace_back(info.name);
  }
  EXPECT_THAT(experts, ElementsAre("experts", "gated_experts", "experts_grad", "gated_experts_grad"));
}

TEST(ExpertOps, TokensAreOfAllPositionsAndSamples) {
  for (OpKind kind : {OpKind::kRoute, OpKind::kRouteSoftmax}) {
    std::vector<bool> of_tokens;
    for (const OperandSignature& output : InfoOf(kind).signature->outputs) of_tokens.push_back(IsOfTokens(output));
    EXPECT_THAT(of_tokens, ElementsAre(true, true, false, true, false, true)) << OpName(kind);
  }
  // Rows of tokens and choices, and leading dims that may be positions and samples.
  for (OpKind kind : {OpKind::kPermuteRows, OpKind::kLinear})
    EXPECT_FALSE(IsOfTokens(InfoOf(kind).signature->outputs.front())) << OpName(kind);
}

}  // namespace
}  // namespace planwright
