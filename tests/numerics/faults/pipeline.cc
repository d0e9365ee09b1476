#include <algorithm>

#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

// The name of a value of microbatch 1, with 0 in place of 1: "language.1.x_in" -> "language.0.x_in".
std::string OfMicrobatch0(std::string name) {
  const size_t at = name.find('1');
  Require(at != std::string::npos, name + " is of no microbatch 1");
  name[at] = '0';
  return name;
}

// The last stage runs the forward of microbatch 1 on the activations of microbatch 0.
void StaleActivations(Plan& plan) {
  Role& role = RoleNamed(plan, "language.s1");
  Instruction& call = CallOf(role, "language.s1.forward", 1);
  const std::string given = call.inputs.front();
  ReadInstead(role.step, call, given, OfMicrobatch0(given));
}

// The first stage runs the backward of microbatch 1 on the gradient of microbatch 0.
void StaleGradient(Plan& plan) {
  Role& role = RoleNamed(plan, "language.s0");
  Instruction& call = CallOf(role, "language.s0.backward", 1);
  const std::string given = call.inputs.front();
  ReadInstead(role.step, call, given, OfMicrobatch0(given));
}

// The first stage, which reads the same tokens, counts the loss tokens too.
void TokensCountedAtBothEnds(Plan& plan) {
  std::vector<Instruction>& first = RoleNamed(plan, "language.s0").step;
  const std::vector<Instruction>& last = RoleNamed(plan, "language.s1").step;
  const auto count = std::find_if(last.begin(), last.end(), [](const Instruction& op) {
    const std::string* into = op.FindText("into");
    return into && *into == "$integers.loss_tokens";
  });
  const auto read =
      std::find_if(first.begin(), first.end(), [](const Instruction& op) { return op.kind == OpKind::kReadTokens; });
  Require(count != last.end() && read != first.end(), "no count of loss tokens");
  Instruction again = *count;
  again.inputs = {read->outputs[3].name};
  auto added = first.insert(read + 1, again);
  ReadInstead(first, *added, again.inputs[0], again.inputs[0]);  // frees
}

}  // namespace

std::vector<PlanFault> PipelineFaults() {
  const Layout pp2 = LayoutNamed(PipelineLayouts(), "pp2");
  return {{"pp_stale_activations", pp2, StaleActivations},
          {"pp_stale_gradient", pp2, StaleGradient},
          {"pp_tokens_counted_at_both_ends", pp2, TokensCountedAtBothEnds}};
}

}  // namespace planwright::testing
