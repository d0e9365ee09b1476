// The forward of a piece on one rank of a grid, from its statement (model_statement.h) and the entries of ops.def.
#pragma once

#include "planner/compile/schedule/derive/derived_piece.h"
#include "planner/compile/schedule/derive/piece_context.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// `goes_over_bridge`: the outputs leave the module, whole. Other outputs have the form of the residual stream.
DerivedPiece DeriveForward(const PieceContext& context, const StatedPiece& stated, bool goes_over_bridge);

}  // namespace planwright
