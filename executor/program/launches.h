// One run of an instruction, or of two as one: its operands are found among the values, its handler or action is
// called, and what that makes becomes its outputs. What runs, when and on which stream, is the walker's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/program/actions.h"
#include "executor/program/bound_program.h"
#include "executor/program/values.h"
#include "executor/program/walk.h"
#include "planner/plan/link/linked_program.h"

namespace planwright::executor {

// An instruction together with all that one run of it needs.
struct Launch {
  const LinkedEntry* entry = nullptr;
  CallContext context;
  std::vector<Value*> inputs, outputs;  // null: state
  std::vector<ActionArguments::Part> parts;
  bool overwrites = false, writes_gradients = false;  // of ComputeContext
  int64_t timed = -1;                                 // its number in the profile; -1: this step is not profiled
  // Keeps the values alive if the instruction runs later: on another thread, or with the next. Empty if it runs at
  // once.
  std::vector<std::shared_ptr<Value>> held;
  std::shared_ptr<const Launch> first;  // the instruction before it, which is done together with it; null: none
};

class Launches {
 public:
  // Keeps references.
  Launches(const LinkedProgram& program, const BoundProgram& bound, const Rank& rank, const Walk& walk,
           ValueTable& values);

  // Sets the entry, its operands, and what the program says of them. Its outputs get new values. `later`: it does not
  // run at once (Launch::held).
  void SetEntry(size_t index, bool later, Launch& launch);
  // Does it. Threads of several streams may call this at the same time. `inputs`: room for those of a compute, which
  // the caller keeps to save allocations.
  void CarryOut(const Launch& launch, Tensors& inputs) const;

 private:
  Tensors Compute(const Launch& launch, Tensors& inputs) const;
  void ComputeBoth(const Launch& launch, Tensors& inputs) const;  // with the instruction before it
  void Keep(const Launch& launch, size_t from, std::span<at::Tensor> made) const;
  const SlotOperands& OperandsOf(const LinkedEntry& entry) const;

  const LinkedProgram& program_;
  const BoundProgram& bound_;
  const Rank& rank_;
  const Walk& walk_;
  ValueTable& values_;
};

}  // namespace planwright::executor
