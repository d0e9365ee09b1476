// Which operations choose experts, and which multiply rows by them, as the operands in ops.def say it. Code asks here
// and names no kind.
#pragma once

#include <cstddef>
#include <optional>

#include "planner/plan/instruction.h"
#include "planner/plan/op_signature.h"

namespace planwright {

// The output of a router that has the experts of each token, k of them: whole numbers [T,k]. Nothing: no router.
std::optional<size_t> ChoicesOf(OpKind kind);

// Whether the kind, forward or backward, takes rows behind the token dispatch to the weights of experts.
bool UsesExpertWeights(OpKind kind);

// Whether the first dim of the operand is tokens: position * samples + sample.
bool IsOfTokens(const OperandSignature& operand);

}  // namespace planwright
