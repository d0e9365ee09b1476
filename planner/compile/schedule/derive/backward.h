// The backward of a piece from its derived forward: the forward in reverse, each compute replaced by the kinds of
// ops.def that differentiate it (lines `transposes`), each conversion by its transpose. A value's gradient is the sum
// of one from each of its uses, in the order in which they come. What was gathered over cp is gathered again, because
// keeping it would cost cp times a rank's own part.
#pragma once

#include "planner/compile/schedule/derive/derived_piece.h"
#include "planner/compile/schedule/derive/piece_context.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// Adds the backward to the piece, and to the types of its values the layouts of their gradients. It goes through all of
// the piece, whatever is frozen; only frozen weights take no gradients.
void DeriveBackward(const PieceContext& context, const StatedPiece& stated, DerivedPiece& piece);

}  // namespace planwright
