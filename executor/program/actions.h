// An action is an instruction bound to this rank: a function that needs only the values. Everything that an instruction
// names (group, peers, sums, modules, buckets) is looked up once, when the action is made before the first step.
// Compute instructions have no action: their handlers are called directly (executor/ops/handler.h).
#pragma once

#include <functional>
#include <span>

#include "executor/ops/handler.h"
#include "executor/program/evaluation_reports.h"
#include "executor/program/step_reports.h"
#include "executor/program/values.h"
#include "executor/program/walk.h"
#include "planner/plan/link/first_additions.h"
#include "planner/plan/link/linked_program.h"

namespace planwright::executor {

// What an action gets each time that its instruction runs.
struct ActionArguments {
  // One part of an exchange instruction.
  struct Part {
    Value* value = nullptr;  // null: a part that receives
    Value* sizes = nullptr;  // ExchangePart::sizes; null: the planned type says all
  };

  const LinkedInstruction& instruction;
  const CallContext& call;
  std::span<Value* const> inputs;  // null: an operand that is state ("$...", "%...")
  std::span<const Part> parts;     // of an exchange, in the order of the instruction

  const at::Tensor& input(size_t i) const { return inputs[i]->tensor; }
};

// Returns the instruction's outputs in their order, state included.
using Action = std::function<Tensors(const ActionArguments&)>;

// Each throws c10::Error if the instruction names something that this rank does not have, and keeps references to what
// it found: `rank`, `handlers`, `reports` and `evaluations` must outlive the action.

// Binds a communication instruction. Only these actions hold a communicator.
Action BindCommunication(const LinkedInstruction& instruction, Rank& rank);

// Binds a state instruction: weights, sums over the step, the optimizer, the log. `module`: the module of the block
// that contains the instruction, null for a role's own list. Modules that the instruction names must be allocated
// (except by allocate_parameters itself).
Action BindState(const LinkedInstruction& instruction, const Module* module, const FirstAdditions& additions,
                 Rank& rank, const Handlers& handlers, StepReports& reports, EvaluationReports& evaluations);

// Binds a storage instruction: the files of checkpoints. Handlers::storage does the work.
Action BindStorage(const LinkedInstruction& instruction, Rank& rank, const Handlers& handlers);

}  // namespace planwright::executor
