#include <algorithm>

#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

void Rename(std::vector<std::string>& names, const std::string& from, const std::string& to) {
  std::replace(names.begin(), names.end(), from, to);
}

// The second forward adds its routing to the statistics again.
void CountStatisticsTwice(Plan& plan) {
  const Block& forward = BlockNamed(plan, "language.moe.forward");
  Block& again = BlockNamed(plan, "language.moe.recompute");
  const auto route = FirstOf(again, OpKind::kRoute);
  std::vector<Instruction> statistics;
  for (const Instruction& op : forward.body) {
    const std::string* into = op.FindText("into");
    if (op.kind == OpKind::kRoutingFingerprint || (into != nullptr && *into == "$integers.routing"))
      statistics.push_back(op);
  }
  Require(statistics.size() == 2, "the first forward has no fingerprint");
  again.body.insert(route + 1, statistics.begin(), statistics.end());
}

// The first forward keeps the layer's output in place of its input, and the second one begins with that.
void BeginWithTheOutput(Plan& plan) {
  Block& forward = BlockNamed(plan, "language.mamba.forward");
  Require(forward.saved == std::vector<std::string>{"x"} && forward.outputs.size() == 1, "another layer is recomputed");
  const std::string output = forward.outputs.front();
  const auto rename = [&](const std::string& from, const std::string& to) {
    for (Instruction& op : forward.body) {
      Rename(op.inputs, from, to);
      Rename(op.frees, from, to);
      for (Output& made : op.outputs) {
        if (made.name == from) made.name = to;
      }
    }
  };
  rename("x", "x_given");
  forward.inputs.front().name = "x_given";
  rename(output, "x");
  forward.outputs = {"x"};
  std::erase_if(forward.probes, [&](const Probe& probe) { return probe.value == output; });
}

// The second forward leaves out a sum over tp, so that what follows it sees only a term.
void LeaveOutASum(Plan& plan) {
  Block& again = BlockNamed(plan, "radio_encoder.layer.recompute");
  const auto sum = FirstOf(again, OpKind::kAllReduce);
  const std::string whole = sum->outputs.front().name, term = sum->inputs.front();
  for (auto op = again.body.erase(sum); op != again.body.end(); ++op) {
    Rename(op->inputs, whole, term);
    Rename(op->frees, whole, term);
  }
}

// The second norm of a layer is made again of what the first one reads.
void NormOfAnotherValue(Plan& plan) {
  Block& again = BlockNamed(plan, "radio_encoder.layer.recompute");
  std::vector<Instruction*> norms;
  for (Instruction& op : again.body) {
    if (op.kind == OpKind::kLayerNorm) norms.push_back(&op);
  }
  Require(norms.size() == 2, "the layer has other norms");
  norms[1]->inputs = norms[0]->inputs;
}

}  // namespace

std::vector<PlanFault> RecomputeFaults() {
  const auto layout = [](const char* name, const char* recompute) {
    return Layout{name, Join(EncoderOn(2, 2), LanguageOn(2, 2, 1, 2), {recompute})};
  };
  return {{"recompute_counts_twice", layout("moe", "modules.language.recompute=[moe]"), CountStatisticsTwice},
          {"recompute_from_the_output", layout("mamba", "modules.language.recompute=[mamba]"), BeginWithTheOutput},
          {"recompute_without_a_sum", layout("block", "modules.radio_encoder.recompute=[block]"), LeaveOutASum},
          {"recompute_of_another_value", layout("elementwise", "modules.radio_encoder.recompute=[elementwise]"),
           NormOfAnotherValue}};
}

}  // namespace planwright::testing
