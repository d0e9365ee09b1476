// Pairs of compute instructions that can be done as one (joins.def).
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

enum class Join {
  kNone,
  kPasses,  // what lies between them is never written
  kKeeps,   // it is written, for others that read it later
};

// By their kinds and attributes, whatever stands between them: a sum has two terms, and gelu its tanh form.
Join JoinOf(const Instruction& first, const Instruction& second);
// Whether ranks of the plan have forms of pairs (executor/ops/joined_forms.def): GPUs do, in bf16.
bool TakesJoinedForms(const Plan& plan);

}  // namespace planwright
