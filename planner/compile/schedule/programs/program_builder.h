// Writes the program of one role: reading of samples, forward and backward calls in the order of the schedule,
// transfers between them, and the tail of the step that reduces gradients, clips and steps. A role is a class of ranks
// of one pipeline stage: of one module, or of all modules where they are colocated.
//
// In four files: program_builder.cc the step as a whole, program_transfers.cc what is sent and received around each
// call, program_tail.cc the tail, program_round.cc the lists of an evaluation.
#pragma once

#include <string>
#include <vector>

#include "planner/compile/schedule/blocks/lower_stage.h"
#include "planner/compile/schedule/programs/program_inputs.h"
#include "planner/plan/plan.h"

namespace planwright {

// A module with its blocks.
struct LoweredModule {
  const Module* module = nullptr;
  ModuleBlocks blocks;
  std::vector<StageBlocks> stages;
  std::vector<const Bridge*> bridges;  // of the language model: those that bring rows; of an encoder: its own

  bool language() const { return module->carries_loss; }
  int last_stage() const { return module->grid.pp - 1; }
  bool learns(int stage) const { return stages[stage].backward.has_value(); }
};

class ProgramBuilder {
 public:
  ProgramBuilder(const ProgramInputs& inputs, const std::vector<LoweredModule>& modules,
                 const std::vector<Accumulator>& accumulators, const Overlap& overlap)
      : inputs_(inputs), modules_(modules), accumulators_(accumulators), overlap_(overlap) {}

  // The step of a stage of one module. `leads`: these ranks send and receive over bridges for their lanes; their
  // siblings of tp and cp get rows and gradients by a broadcast.
  std::vector<Instruction> DisjointStep(const LoweredModule& lowered, const StageSchedule& schedule, bool leads);

  // The step of colocated modules. They take turns in each microbatch: encoders forward, rows to the language model's
  // layout, language model forward and backward, gradients back, encoders backward.
  std::vector<Instruction> ColocatedStep();

  // Role::evaluate, of the same two kinds of roles: the forwards of one block of samples, as those of microbatch 0 of a
  // step, and their losses added up. And Role::score. Empty where nothing is evaluated.
  std::vector<Instruction> DisjointRound(const LoweredModule& lowered, int stage, bool leads);
  std::vector<Instruction> ColocatedRound();
  std::vector<Instruction> Score();

  std::vector<Instruction> Setup(const std::vector<const LoweredModule*>& modules);
  // Role::resume and Role::save; empty where the run writes no checkpoints.
  std::vector<Instruction> Resume(const std::vector<const LoweredModule*>& modules);
  std::vector<Instruction> Save(const std::vector<const LoweredModule*>& modules);

 private:
  // One exchange: what this rank sends and receives in it, and the values received.
  struct Transfers {
    std::vector<ExchangePart> parts;
    std::vector<Output> received;
  };

  void Begin(bool evaluates);
  // The block that a stage runs forward: in an evaluation its own.
  const Block& ForwardOf(const LoweredModule& lowered, int stage) const;
  // Sends value `given` of one colocated module to value `taken` of the other, in another layout of the same ranks.
  void Pass(const LoweredModule& from, const LoweredModule& to, const Bridge& bridge, bool backward,
            const std::string& given, const std::string& taken, int microbatch);
  // Where every sample stays on its rank nothing is sent: the last call reads the value under the name it has.
  void Rename(const std::string& from, const std::string& to);
  // All forwards of a microbatch of colocated modules.
  void ColocatedForwards(const LoweredModule& language, int microbatch);
  const LoweredModule& ColocatedLanguage() const;
  // Adds the losses of the forward just called, of a last stage, to the sums by source. `sums`: "$evaluated".
  void AddBySource(const LoweredModule& language, int microbatch, const std::string& sums);
  void ReadSamples(const LoweredModule& lowered, int stage, int microbatch);
  void ReadImages(const LoweredModule& lowered, int stage, int microbatch);
  void ReadTokens(const LoweredModule& lowered, int stage, int microbatch);
  void ReadPositions(const LoweredModule& lowered, int stage, int microbatch);
  void Forward(const LoweredModule& lowered, int stage, int microbatch);
  void Backward(const LoweredModule& lowered, int stage, int microbatch);
  // What stage `stage` sends after an action ("F3") and receives before one. Both ends of an edge have its transfers in
  // the same order, so no ranks wait for each other in a circle (docs/progress.md).
  void AddSends(const LoweredModule& lowered, int stage, const std::string& action, bool leads, Transfers& transfers);
  void AddReceives(const LoweredModule& lowered, int stage, const std::string& action, bool leads,
                   Transfers& transfers);
  void AddSendsOfRows(const LoweredModule& encoder, int microbatch, Transfers& transfers);
  void Exchange(const Transfers& transfers, int origin);
  // What a bridge brought, from the leader to its siblings of tp and cp.
  void BroadcastReceived(const LoweredModule& lowered, int stage, const std::string& action, bool leads);
  bool CarriesGradient(const Bridge& bridge) const;
  // How many microbatches of rows an encoder sends before it receives its first gradient. Each later one goes out in
  // the exchange that brings a gradient.
  int RowsBeforeGradients(const LoweredModule& encoder) const;
  const LoweredModule& LoweredNamed(const std::string& name) const;

  void Tail(const std::vector<const LoweredModule*>& modules, int stage);
  void ReduceGradients(const LoweredModule& lowered, int stage);
  void StepBuckets(const Module& module, int stage);
  Instruction& Emit(OpKind kind, const Module* module = nullptr, int bucket = -1);
  void SumOver(const std::string& group, const std::string& accumulator);  // in place
  void Append(std::vector<Instruction> instructions);
  std::vector<Instruction> Finish();

  const ProgramInputs& inputs_;
  const std::vector<LoweredModule>& modules_;
  const std::vector<Accumulator>& accumulators_;
  const Overlap overlap_;
  bool evaluates_ = false;  // a list of an evaluation is being written
  std::vector<Instruction> instructions_;
};

}  // namespace planwright
