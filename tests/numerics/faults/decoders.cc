// Faults that decoders alone could have: of rotary positions, softmax routers, gated experts, and a head that is the
// embedding.
#include <algorithm>

#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

// Each rank turns queries and keys by consecutive positions.
void CutPositionsInRankOrder(Plan& plan) {
  Instruction& cut = *MakerOf(BlockNamed(plan, "language.attention.forward"), "positions_local");
  Require(cut.attributes.erase("zigzag") == 1, "positions are not cut zigzag");
}

// The backward turns back by other angles than the forward has turned.
void TurnBackFaster(Plan& plan) {
  Instruction& turn = *FirstOf(BlockNamed(plan, "language.attention.backward"), OpKind::kRopeGrad);
  turn.attributes["theta"] = turn.real("theta") / 2;
}

void UndividedBackward(Plan& plan) {
  Instruction& route = *FirstOf(BlockNamed(plan, "language.moe.backward"), OpKind::kRouteSoftmaxGrad);
  Require(route.integer("normalized") == 1, "scores are not divided by their sum");
  route.attributes["normalized"] = int64_t{0};
}

// The embedding gets no gradient of the head that is the same storage.
void LoseTheGradientOfTheHead(Plan& plan) {
  Block& head = BlockNamed(plan, "language.head.backward");
  const auto lost = std::remove_if(head.body.begin(), head.body.end(), [](const Instruction& op) {
    return op.gradients == std::vector<std::string>{"lm_head"};
  });
  Require(lost != head.body.end(), "the head has no weight");
  head.body.erase(lost, head.body.end());
}

}  // namespace

std::vector<PlanFault> DecoderFaults() {
  const auto layout = [](const char* name, int ranks, const std::vector<AxisSize>& axes,
                         const std::vector<std::string>& training = {}) {
    return Layout{name, Join(LanguageOn(0, ranks, 1, 1), Parallel("language", axes)), training,
                  "recipes/qwen3_moe_tiny.yaml", LanguageOn(0, 1, 1, 1)};
  };
  return {
      {"positions_of_consecutive_tokens", layout("decoder_cp2", 2, {{"cp", 2}}), CutPositionsInRankOrder},
      {"keys_turn_back_faster", layout("decoder_tp2", 2, {{"tp", 2}}), TurnBackFaster},
      {"softmax_scores_with_the_other_backward", layout("decoder_ep2", 2, {{"ep", 2}}), UndividedBackward},
      {"gated_experts_of_other_rows", layout("decoder_expert_tp2", 2, {{"tp", 2}, {"expert_tp", 2}}),
       [](Plan& plan) { SwapMembers(plan, "language.moe.forward", "rows_all", OpKind::kGatedExperts); }},
      {"tied_head_without_gradient", layout("decoder_tied_tp2", 2, {{"tp", 2}}, {"models.decoder_tiny.tied=true"}),
       LoseTheGradientOfTheHead},
  };
}

}  // namespace planwright::testing
