// Pairs of compute instructions that can be done as one (joins.def).
#pragma once

#include "planner/plan/instruction.h"

namespace planwright {

enum class Join {
  kNone,
  kPasses,  // what lies between them is never written
  kKeeps,   // it is written, for others that read it later
};

Join JoinOf(OpKind first, OpKind second);

}  // namespace planwright
