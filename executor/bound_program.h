// A linked program with what this rank needs to run it: of each instruction its action, of each call its context and
// its tensors of parameters and gradients. Names are looked up here and nowhere behind it.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/action.h"
#include "executor/rank.h"
#include "executor/step_reports.h"
#include "planner/link/linked_program.h"

namespace planwright::executor {

// A slot operand list of one instruction in one frame.
struct SlotOperands {
  Tensors parameters, gradients;
};

struct BoundInstruction {
  Action action;  // of all classes but compute
  ComputeHandler compute = nullptr;
  std::optional<CallContext> context;  // its own: it names a module or a microbatch
  std::string text;                    // for the recorder and for errors
  RecorderState state = RecorderState::kRunning;
};

struct BoundCall {
  CallContext context;
  const SlotOperands* operands = nullptr;  // by place in the block; null: the block has no slots
  int origin = -1;                         // of instructions without one
};

class BoundProgram {
 public:
  BoundProgram(const LinkedProgram& program, Rank& rank, StepReports& reports);

  // What binds needs the modules that it names to be allocated. An entry that is bound already is left alone.
  void Bind(const LinkedEntry& entry);

  const BoundInstruction& instruction(const LinkedEntry& entry) const {
    return instructions_[entry.instruction->number];
  }
  const BoundCall& call(const LinkedEntry& entry) const { return calls_[entry.call]; }

 private:
  void BindInstruction(const LinkedInstruction& linked, const LinkedCall& call);
  const SlotOperands* OperandsOf(const LinkedCall& call);

  const LinkedProgram& program_;
  Rank& rank_;
  StepReports& reports_;
  std::vector<BoundInstruction> instructions_;  // by LinkedInstruction::number
  std::vector<BoundCall> calls_;
  std::vector<bool> bound_calls_;
  std::unordered_map<int, std::vector<SlotOperands>> operands_;  // by LinkedCall::slots
};

}  // namespace planwright::executor
