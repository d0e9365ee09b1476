// A linked program together with what this rank needs to run it: for each instruction its action or handler, for each
// call its context and its tensors of parameters and gradients. All names are looked up here, once. The walker looks up
// nothing.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/ops/joined_forms.h"
#include "executor/program/actions.h"
#include "executor/program/step_reports.h"
#include "executor/program/walk.h"
#include "planner/plan/link/first_additions.h"
#include "planner/plan/link/linked_program.h"

namespace planwright::executor {

// The parameters and gradients of one instruction in one frame, in the order of its operands.
struct SlotOperands {
  Tensors parameters, gradients;
};

struct BoundInstruction {
  Action action;                     // of every class except compute
  ComputeHandler compute = nullptr;  // of compute: the form that was chosen
  // Not null: this does the instruction before it too, in place of both their forms.
  JoinedHandler joined = nullptr;
  bool done_by_next = false;  // the next one has such a form
  // Set if the instruction itself names a module or a microbatch: then it does not use the context of its call.
  std::optional<CallContext> context;
  std::string text;  // for the recorder and for errors
  RecorderState state = RecorderState::kRunning;
  std::chrono::nanoseconds deadline{}, first_deadline{};  // the second until a step is done (Deadline)
};

struct BoundCall {
  CallContext context;
  const SlotOperands* operands = nullptr;  // by index of the instruction in the block; null: the block has no slots
  int origin = -1;                         // for instructions of the call that have none themselves
};

class BoundProgram {
 public:
  // Keeps references.
  BoundProgram(const LinkedProgram& program, Rank& rank, const Walk& walk, StepReports& reports,
               EvaluationReports& evaluations);

  // Binds the entry's instruction and call, unless they are bound already. c10::Error if they name something that this
  // rank does not have; modules must be allocated by then.
  void Bind(const LinkedEntry& entry);

  const BoundInstruction& instruction(const LinkedEntry& entry) const {
    return instructions_[entry.instruction->number];
  }
  const BoundCall& call(const LinkedEntry& entry) const { return calls_[entry.call]; }
  const FirstAdditions& first_additions() const { return first_additions_; }

  // How many compute instructions are bound, how many of each kind in their fast form, and how many are done together
  // with the one before them, for the log.
  std::string FormsText() const;

 private:
  void BindInstruction(const LinkedEntry& entry);
  // `module`: of the block that contains the instruction; null: none.
  ComputeBinding BindingOf(const LinkedCall& call, const LinkedInstruction& linked, const Module* module,
                           const SlotOperands* slots) const;
  ComputeHandler BindCompute(const LinkedEntry& entry, const Module* module);
  // With the instruction before it, which is bound already.
  void BindJoined(const LinkedEntry& entry, const Module* module);
  const SlotOperands* SlotOperandsOf(const LinkedCall& call);

  const LinkedProgram& program_;
  const FirstAdditions first_additions_;
  Rank& rank_;
  const Handlers& handlers_;
  StepReports& reports_;
  EvaluationReports& evaluations_;
  std::vector<BoundInstruction> instructions_;  // by LinkedInstruction::number
  std::vector<BoundCall> calls_;
  std::vector<bool> bound_calls_;
  struct FormCounts {
    int all = 0, fast = 0;
    bool has_fast = false;
  };
  std::map<OpKind, FormCounts> forms_;  // of the instructions that are bound
  int joined_ = 0;                      // of these
  // By LinkedCall::slots, then by index in the block. Calls of one block in one frame share it.
  std::unordered_map<int, std::vector<SlotOperands>> operands_;
};

}  // namespace planwright::executor
