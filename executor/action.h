// What an instruction is once its rank is known: a function that has all it needs but the values. Made once, before the first step; the walker
// then looks nothing up.
#pragma once

#include <functional>

#include "executor/ops/handler.h"
#include "executor/values.h"
#include "planner/link/linked_program.h"

namespace planwright::executor {

// One run of an instruction, in one of its calls.
struct Arguments {
  const LinkedInstruction& instruction;
  const int* numbers;  // of the call's values
  Values& values;
  const CallContext& call;

  int number(size_t input) const { return numbers[instruction.inputs[input]]; }
  const at::Tensor& input(size_t i) const { return values.Get(number(i)); }
};

// Gives what the instruction makes, state included, in the order of its outputs.
using Action = std::function<Tensors(const Arguments&)>;

}  // namespace planwright::executor
