// Writes one role's program: reading, forward and backward calls in schedule order, transfers between them, and the
// tail that reduces, clips and steps. A role is a class of ranks of one pipeline stage: of one module, or of all
// modules where they are colocated.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/schedule/lower_stage.h"

namespace planwright {

// What a role's ranks are to the bridges of their stage: a leader sends and receives for its siblings of tp and cp.
enum class BridgePart { kNone, kLeader, kSibling };

struct LoweredModule {
  const Module* module = nullptr;
  ModuleBlocks blocks;
  std::vector<StageBlocks> stages;
  std::vector<const Bridge*> bridges;  // that bring rows here (language), or carry this module's rows away (encoder)

  bool language() const { return module->carries_loss; }
  int last_stage() const { return module->grid.pp - 1; }
  bool learns(int stage) const { return stages[stage].backward.has_value(); }
};

class ProgramBuilder {
 public:
  ProgramBuilder(const Plan& plan, const std::vector<LoweredModule>& modules, const Overlap& overlap, DType dtype)
      : plan_(plan), modules_(modules), overlap_(overlap), dtype_(dtype) {}

  // One module's stage per rank; `stage` gives the order.
  std::vector<Instruction> DisjointStep(const LoweredModule& lowered, const StageSchedule& stage, BridgePart part);

  // Encoders and language model on the same ranks: per microbatch forward, regather, forward, backward, regather,
  // backward.
  std::vector<Instruction> ColocatedStep();

  std::vector<Instruction> Setup(const std::vector<const LoweredModule*>& modules);

 private:
  struct Transfers {
    std::vector<ExchangePart> parts;
    std::vector<Output> received;
  };

  void Begin();
  void Read(const LoweredModule& lowered, int stage, int microbatch);
  void Forward(const LoweredModule& lowered, int stage, int microbatch);
  void Backward(const LoweredModule& lowered, int stage, int microbatch);
  // What stage `stage` hands on after an action ("F3") and needs before one. Both ends of an edge have its transfers in
  // one order, which is why nothing waits in a circle (docs/progress.md).
  void Give(const LoweredModule& lowered, int stage, const std::string& action, bool leads, Transfers& transfers);
  void Need(const LoweredModule& lowered, int stage, const std::string& action, bool leads, Transfers& transfers);
  void Exchange(const Transfers& transfers, int origin);
  // Rows from the bridge leader to its siblings of tp and cp.
  void BroadcastNeeded(const LoweredModule& lowered, int stage, const std::string& action, bool leads);
  bool CarriesGradient(const Bridge& bridge) const;
  // Microbatches whose rows an encoder hands on before it takes its first gradient; the next one's go with that
  // gradient, and so on.
  int RowsBeforeGradients(const LoweredModule& encoder) const;
  void GiveRows(const LoweredModule& encoder, int microbatch, Transfers& transfers);
  const LoweredModule& LoweredNamed(const std::string& name) const;

  void Tail(const std::vector<const LoweredModule*>& modules, int stage);
  void ReduceGradients(const LoweredModule& lowered, int stage);
  void StepBuckets(const Module& module, int stage);
  void State(OpKind kind, const Module* module, int bucket = -1);
  void SumOver(const std::string& group, const std::string& name);  // an accumulator, in place
  void Append(std::vector<Instruction> instructions);
  std::vector<Instruction> Finish();

  const Plan& plan_;
  const std::vector<LoweredModule>& modules_;
  const Overlap overlap_;
  const DType dtype_;
  std::vector<Instruction> step_;
};

}  // namespace planwright
