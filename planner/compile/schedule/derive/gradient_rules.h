// Which kinds of ops.def differentiate an instruction of a forward.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "planner/compile/schedule/derive/derived_piece.h"
#include "planner/plan/op_table.h"

namespace planwright {

// A kind that differentiates a step, and the steps of its chain (indices in DerivedPiece::forward). An optional link
// that the forward lacks is none.
struct BackwardKind {
  const OpInfo* info = nullptr;
  const GradientRule* rule = nullptr;
  std::vector<std::optional<size_t>> chain;
};

// Those of the step, the ones without results first.
std::vector<BackwardKind> BackwardKindsOf(const DerivedPiece& piece, size_t step);

// Whether the gradient of the step's output, or the loss, gives one of its input.
bool GivesGradient(const DerivedPiece& piece, size_t step, size_t input);
// Whether the step takes a gradient of its output.
bool WantsGradient(const DerivedPiece& piece, size_t step, size_t output);

// What an all_reduce made of the value; itself where nothing did.
size_t ReducedForm(const DerivedPiece& piece, size_t value);

}  // namespace planwright
