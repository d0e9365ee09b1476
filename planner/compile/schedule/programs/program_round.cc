// The lists of an evaluation: a round, which runs the forwards of one block of samples, and the score, which sums the
// losses of all rounds over the ranks (docs/training/evaluation.md#rounds). A round is written as microbatch 0 of a
// step without backwards, so that stages, bridges and dispatch are those of training.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/programs/program_builder.h"
#include "planner/compile/schedule/programs/program_values.h"

namespace planwright {

using std::string;

void ProgramBuilder::AddBySource(const LoweredModule& language, int m, const string& sums) {
  const Module& module = *language.module;
  const Instruction& forward = instructions_.back();
  Require(forward.kind == OpKind::kCall && forward.outputs.size() == 1, "a forward returns the losses of its tokens");
  const Output losses = forward.outputs.front();
  // All ranks along an axis add a part of x, or one of them adds all of it.
  const auto add = [&](const string& x, const Layout& layout, const string& into) {
    Instruction& sum = Emit(OpKind::kAccumulateRows, &module);
    sum.inputs = {x, ValueOf(module, m, "parts")};
    sum.attributes["into"] = into;
    std::vector<string> replicated;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (module.grid.size(axis) > 1 && !layout.contains(axis)) replicated.emplace_back(AxisName(axis));
    }
    if (!replicated.empty()) sum.attributes["once_over"] = absl::StrJoin(replicated, ",");
  };
  add(losses.name, losses.type.layout, sums + "_losses");
  add(ValueOf(module, m, "counts"), {}, sums + "_tokens");
}

std::vector<Instruction> ProgramBuilder::DisjointRound(const LoweredModule& lowered, int stage, bool leads) {
  if (inputs_.evaluation.empty()) return {};
  Begin(/*evaluates=*/true);
  const int origin = lowered.bridges.empty() ? lowered.module->origin : lowered.bridges.front()->origin;
  const string action = "F0";
  ReadSamples(lowered, stage, 0);
  Transfers before, behind;
  AddReceives(lowered, stage, action, leads, before);
  Exchange(before, origin);
  BroadcastReceived(lowered, stage, action, leads);
  Forward(lowered, stage, 0);
  if (lowered.language() && stage == lowered.last_stage()) AddBySource(lowered, 0, "$evaluated");
  AddSends(lowered, stage, action, leads, behind);
  Exchange(behind, origin);
  return Finish();
}

std::vector<Instruction> ProgramBuilder::ColocatedRound() {
  if (inputs_.evaluation.empty()) return {};
  Begin(/*evaluates=*/true);
  const LoweredModule& language = ColocatedLanguage();
  ColocatedForwards(language, 0);
  AddBySource(language, 0, "$evaluated");
  return Finish();
}

std::vector<Instruction> ProgramBuilder::Score() {
  if (inputs_.evaluation.empty()) return {};
  Begin(/*evaluates=*/true);
  for (const char* sum : {"$evaluated_losses", "$evaluated_tokens"}) {
    if (inputs_.world_size > 1) SumOver("world", sum);
  }
  Emit(OpKind::kLogEvaluation);
  return Finish();
}

}  // namespace planwright
