// Faults in the sums that guard a bridge.
#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

Instruction& AdditionTo(const std::string& sum, Plan& plan) {
  for (Block& block : plan.blocks) {
    for (Instruction& op : block.body) {
      const std::string* into = op.FindText("into");
      if (into && *into == sum) return op;
    }
  }
  Bug("nothing is added to " + sum);
}

void AddSquaresOnEveryTpRank(Plan& plan) {
  if (AdditionTo("$reals.square_sum.radio_encoder", plan).attributes.erase("once_over") != 1)
    Bug("the squares are not replicated");
}

void AddElementsAgain(Plan& plan) {
  for (Block& block : plan.blocks) {
    for (size_t i = 0; i < block.body.size(); ++i) {
      const std::string* into = block.body[i].FindText("into");
      if (!into || *into != "$integers.elements.radio_encoder") continue;
      Instruction again = block.body[i];
      again.frees.clear();
      block.body.insert(block.body.begin() + static_cast<std::ptrdiff_t>(i), std::move(again));
      return;
    }
  }
  Bug("no elements are added");
}

}  // namespace

std::vector<PlanFault> EdgeFaults() {
  return {
      {"bridge_squares_of_every_tp_rank",
       {"tp2_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1))},
       AddSquaresOnEveryTpRank},
      {"bridge_elements_twice", {"dp2_dp2", Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))}, AddElementsAgain},
  };
}

}  // namespace planwright::testing
