// Finds instructions in blocks.
#pragma once

#include <gtest/gtest.h>

#include "planner/plan/plan.h"

namespace planwright::testing {

// The block's first instruction of a kind; a failure of the test if there is none.
inline const Instruction& The(const Block& block, OpKind kind) {
  for (const Instruction& instruction : block.body) {
    if (instruction.kind == kind) return instruction;
  }
  ADD_FAILURE() << block.name << " has no " << OpName(kind);
  static const Instruction none;
  return none;
}

}  // namespace planwright::testing
