#include "planner/compile/schedule/blocks/block_passes.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {
namespace {

using std::string;

// Whether an instruction does more than make its outputs.
bool HasEffect(const Instruction& instruction) {
  switch (OpClassOf(instruction.kind)) {
    case OpClass::kControl:
    case OpClass::kData:
    case OpClass::kState:
    case OpClass::kStorage: return true;
    case OpClass::kCommunication:
      // Each rank runs its own half of an exchange or a broadcast: the reader may be another rank.
      if (instruction.kind == OpKind::kExchange || instruction.kind == OpKind::kBroadcast) return true;
      break;
    case OpClass::kCompute: break;
  }
  return !instruction.gradients.empty();
}

std::set<string> ReadBy(const Block& block) {
  std::set<string> read;
  for (const Instruction& instruction : block.body) {
    for (string& name : ValuesRead(instruction)) read.insert(std::move(name));
  }
  return read;
}

void KeepOnly(const std::set<string>& wanted, std::vector<Output>& outputs) {
  std::erase_if(outputs, [&](const Output& output) { return !wanted.contains(output.name); });
}

void KeepOnly(const std::set<string>& wanted, std::vector<string>& names) {
  std::erase_if(names, [&](const string& name) { return !wanted.contains(name); });
}

// Where nothing learns no gradient comes.
void DeclareIdleGradients(Block& forward) {
  for (Instruction& instruction : forward.body) {
    for (Output& output : instruction.outputs) DeclareIdleGradient(output);
  }
}

}  // namespace

void DeclareIdleGradient(Output& value) {
  if (!value.type.gradient) return;
  value.type.gradient = value.type.layout;
  std::erase_if(*value.type.gradient,
                [](const auto& along) { return along.second.state == AxisLayout::State::kPartial; });
}

void DropDeadInstructions(Block& block) {
  std::set<string> wanted(block.outputs.begin(), block.outputs.end());
  wanted.insert(block.saved.begin(), block.saved.end());
  for (const Probe& probe : block.probes) wanted.insert(probe.value);
  // Backwards: whoever reads a value comes behind the instruction that makes it.
  std::vector<Instruction> kept;
  for (auto instruction = block.body.rbegin(); instruction != block.body.rend(); ++instruction) {
    const bool wants = std::any_of(instruction->outputs.begin(), instruction->outputs.end(),
                                   [&](const Output& output) { return wanted.contains(output.name); });
    if (!wants && !HasEffect(*instruction)) continue;
    for (string& name : ValuesRead(*instruction)) wanted.insert(std::move(name));
    kept.push_back(std::move(*instruction));
  }
  block.body.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  FillFrees(block);
}

void PruneSaved(Block& forward, Block& backward) {
  DropDeadInstructions(backward);
  std::set<string> read = ReadBy(backward);
  read.insert(backward.outputs.begin(), backward.outputs.end());
  KeepOnly(read, backward.takes);
  KeepOnly(read, forward.saved);
  DropDeadInstructions(forward);
}

std::optional<Block> MakeRecompute(Block& forward) {
  Require(forward.takes.empty() && absl::EndsWith(forward.name, ".forward"),
          absl::StrCat(forward.name, " is no forward to run again"));
  Block again = forward;
  again.name = absl::StrCat(forward.name.substr(0, forward.name.size() - string(".forward").size()), ".recompute");
  again.inputs.clear();
  again.outputs.clear();
  again.probes.clear();
  // State operations add to accumulators and expert counts: a second run would count every token twice.
  std::erase_if(again.body,
                [](const Instruction& instruction) { return OpClassOf(instruction.kind) == OpClass::kState; });
  DropDeadInstructions(again);
  if (again.body.empty()) return std::nullopt;
  std::set<string> needed = ReadBy(again);
  needed.insert(again.saved.begin(), again.saved.end());
  again.takes = forward.inputs;
  KeepOnly(needed, again.takes);

  // What `again` saves, the first run need not: it may even stop computing some of it.
  forward.saved.clear();
  for (const Output& take : again.takes) forward.saved.push_back(take.name);
  DropDeadInstructions(forward);
  return again;
}

std::optional<Block> MakeElementwiseRecompute(Block& forward, const Block& backward) {
  Require(forward.takes.empty() && absl::EndsWith(forward.name, ".forward"),
          absl::StrCat(forward.name, " is no forward to run again"));
  const std::set<string> saved(forward.saved.begin(), forward.saved.end());
  // Values that are there when the backward begins: kept, or made again from such.
  std::set<string> there, made;
  for (const Output& input : forward.inputs) {
    if (saved.contains(input.name)) there.insert(input.name);
  }
  Block again;
  for (const Instruction& instruction : forward.body) {
    const bool wanted = std::any_of(instruction.outputs.begin(), instruction.outputs.end(),
                                    [&](const Output& output) { return saved.contains(output.name); });
    if (!wanted) continue;
    const bool runs =
        InfoOf(instruction.kind).elementwise && std::all_of(instruction.inputs.begin(), instruction.inputs.end(),
                                                            [&](const string& input) { return there.contains(input); });
    for (const Output& output : instruction.outputs) {
      if (runs || saved.contains(output.name)) there.insert(output.name);
      if (runs) made.insert(output.name);
    }
    if (runs) again.body.push_back(instruction);
  }
  if (again.body.empty()) return std::nullopt;
  again.name = absl::StrCat(forward.name.substr(0, forward.name.size() - string(".forward").size()), ".recompute");
  again.module = forward.module;
  again.origin = forward.origin;
  again.takes = backward.takes;
  std::erase_if(again.takes, [&](const Output& take) { return made.contains(take.name); });
  again.saved = forward.saved;
  std::erase_if(forward.saved, [&](const string& name) { return made.contains(name); });
  DropDeadInstructions(again);
  DropDeadInstructions(forward);
  return again;
}

Block MakeEvaluation(const Block& forward) {
  Require(forward.takes.empty() && absl::EndsWith(forward.name, ".forward"),
          absl::StrCat(forward.name, " is no forward to evaluate"));
  Block evaluation = forward;
  evaluation.name = absl::StrCat(forward.name.substr(0, forward.name.size() - string(".forward").size()), ".evaluate");
  evaluation.probes.clear();
  evaluation.saved.clear();
  std::erase_if(evaluation.body,
                [](const Instruction& instruction) { return OpClassOf(instruction.kind) == OpClass::kState; });
  for (Output& input : evaluation.inputs) input.type.gradient.reset();
  for (Instruction& instruction : evaluation.body) {
    for (Output& output : instruction.outputs) output.type.gradient.reset();
    if (instruction.kind == OpKind::kTokenLoss) evaluation.outputs = {instruction.outputs.front().name};
    if (instruction.kind == OpKind::kPositionAndClass) instruction.attributes["crop"] = int64_t{0};
  }
  DropDeadInstructions(evaluation);
  return evaluation;
}

void FinishBlocks(LayerBlocks& blocks, bool learns, Recompute recompute) {
  if (!learns) {
    blocks.backward = blocks.recompute = std::nullopt;
    blocks.forward.saved.clear();
    DropDeadInstructions(blocks.forward);
    DeclareIdleGradients(blocks.forward);
    return;
  }
  PruneSaved(blocks.forward, *blocks.backward);
  if (recompute == Recompute::kLayer) blocks.recompute = MakeRecompute(blocks.forward);
  if (recompute == Recompute::kElementwise)
    blocks.recompute = MakeElementwiseRecompute(blocks.forward, *blocks.backward);
}

Recompute RecomputeOf(const Module& module, char kind) {
  const auto named = [&](std::string_view word) {
    return std::find(module.recompute.begin(), module.recompute.end(), word) != module.recompute.end();
  };
  if (named(LayerWordOf(module, kind))) return Recompute::kLayer;
  return named(kElementwise) ? Recompute::kElementwise : Recompute::kNothing;
}

}  // namespace planwright
