#include <algorithm>
#include <utility>

#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

std::vector<Instruction*> OfKind(std::vector<Instruction>& body, OpKind kind) {
  std::vector<Instruction*> found;
  for (Instruction& op : body) {
    if (op.kind == kind) found.push_back(&op);
  }
  return found;
}

// The rows of each encoder go to the positions of the other's token. Both have as many rows.
void RowsAtTheOthersPositions(Plan& plan) {
  const auto merges = OfKind(BlockNamed(plan, "language.embed.forward").body, OpKind::kMergeImages);
  Require(merges.size() == 2, "two merges");
  std::swap(merges[0]->attributes["image_token"], merges[1]->attributes["image_token"]);
}

// Each encoder gets the gradient of the other's rows.
void GradientsOfTheOthersRows(Plan& plan) {
  Block& backward = BlockNamed(plan, "language.embed.backward");
  Require(backward.outputs.size() == 2, "two gradients");
  std::swap(backward.outputs[0], backward.outputs[1]);
}

// The squares of the second encoder's gradients are missing in the norm, by which all gradients are clipped.
void NormWithoutTheSecond(Plan& plan) {
  const size_t erased = std::erase_if(RoleNamed(plan, "fine_encoder.s0").step,
                                      [](const Instruction& op) { return op.kind == OpKind::kSquareNorm; });
  Require(erased > 0, "a norm");
}

}  // namespace

std::vector<PlanFault> EncodersFaults() {
  const Layout apart = LayoutNamed(EncodersLayouts(), "two_encoders_apart");
  return {{"encoders_rows_at_the_others_positions", apart, RowsAtTheOthersPositions},
          {"encoders_gradients_of_the_others_rows", apart, GradientsOfTheOthersRows},
          {"encoders_norm_without_the_second", apart, NormWithoutTheSecond}};
}

}  // namespace planwright::testing
