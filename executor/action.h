// What an instruction is once its rank is known: a function that has all it needs but the values. Made once, before the
// first step; the walker then looks nothing up.
#pragma once

#include <functional>
#include <span>

#include "executor/ops/handler.h"
#include "executor/values.h"
#include "planner/link/linked_program.h"

namespace planwright::executor {

// One run of an instruction, in one of its calls.
struct Arguments {
  struct Part {
    Value* value = nullptr;        // of a part that sends
    Value* sample_rows = nullptr;  // of a part over a bridge
  };

  const LinkedInstruction& instruction;
  const CallContext& call;
  std::span<Value* const> inputs;  // null: state
  std::span<const Part> parts;     // of an exchange

  const at::Tensor& input(size_t i) const { return inputs[i]->tensor; }
};

// Gives what the instruction makes, state included, in the order of its outputs.
using Action = std::function<Tensors(const Arguments&)>;

}  // namespace planwright::executor
