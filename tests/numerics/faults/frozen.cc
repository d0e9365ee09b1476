#include <algorithm>

#include "planner/base/text/bug.h"
#include "planner/compile/schedule/blocks/block_builder.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

const std::vector<std::string> kFrozenLanguage = {"modules.language.train.backbone=frozen"};

// A frozen layer of the language model has no weights that learn, so what its backward makes is left out: the gradient
// goes only through the residual stream.
void SkipAFrozenLayer(Plan& plan) {
  Block& stage = BlockNamed(plan, "language.s0.backward");
  const auto layer = std::find_if(stage.body.begin(), stage.body.end(),
                                  [](const Instruction& i) { return i.block == "language.attention.backward"; });
  Require(layer != stage.body.end(), "no call of language.attention.backward");
  const auto next = layer + 1;
  std::replace(next->inputs.begin(), next->inputs.end(), layer->outputs.front().name, layer->inputs.front());
  FillFrees(stage);
}

// A frozen encoder crops its position table as in training.
void LeaveTheCropOn(Plan& plan) {
  FirstOf(BlockNamed(plan, "radio_encoder.embed.forward"), OpKind::kPositionAndClass)->attributes["crop"] = int64_t{1};
}

// The router of a frozen model still has an auxiliary loss, whose gradient goes to the projector.
void KeepTheAuxiliaryLoss(Plan& plan) {
  Block& forward = BlockNamed(plan, "language.moe.forward");
  Instruction& route = *FirstOf(forward, OpKind::kRoute);
  const Output counts = route.outputs.at(4);
  std::erase(route.frees, counts.name);
  forward.saved.push_back(counts.name);
  Block& backward = BlockNamed(plan, "language.moe.backward");
  backward.takes.push_back(counts);
  Instruction& grad = *FirstOf(backward, OpKind::kRouteGrad);
  grad.inputs.push_back(counts.name);
  grad.attributes["sequence"] = plan.budget.sequence_length;
  grad.attributes["aux_scale"] = 1e-4 * static_cast<double>(plan.budget.sequence_length);
}

// The expert bias of a frozen model moves after each step, as in training.
void MoveTheExpertBias(Plan& plan) {
  Block& forward = BlockNamed(plan, "language.moe.forward");
  const auto route = FirstOf(forward, OpKind::kRoute);
  forward.body.insert(route + 1, Instruction{.kind = OpKind::kAccumulateCounts, .inputs = {route->outputs.at(2).name}});
  for (Role& role : plan.roles) {
    if (std::find(role.modules.begin(), role.modules.end(), "language") == role.modules.end()) continue;
    role.step.insert(role.step.end() - 1, Instruction{.kind = OpKind::kUpdateExpertBias,
                                                      .attributes = {{"module", std::string("language")}}});
  }
}

}  // namespace

std::vector<PlanFault> FrozenFaults() {
  const Layout disjoint = {"frozen_language", Join(EncoderOn(1, 1), LanguageOn(1, 1, 1, 1)), kFrozenLanguage},
               stage2 = {"stage2",
                         Join(EncoderOn(1, 1), LanguageOn(1, 2, 2, 2)),
                         {"modules.radio_encoder.train.backbone=frozen"}};
  return {{"frozen_layer_without_backward", disjoint, SkipAFrozenLayer},
          {"frozen_encoder_crops", stage2, LeaveTheCropOn},
          {"frozen_model_with_auxiliary_loss", disjoint, KeepTheAuxiliaryLoss},
          {"frozen_model_moves_expert_bias", disjoint, MoveTheExpertBias}};
}

}  // namespace planwright::testing
