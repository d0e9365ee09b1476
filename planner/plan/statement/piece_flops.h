// The forward FLOPs of a piece: those of its computes by the lines `flops` of ops.def, as on one rank (docs/flops.md).
#pragma once

#include "planner/plan/statement/model_statement.h"

namespace planwright {

// Of one token; of an encoder, of one patch, on average over the images of the data. Rounded to the nearest number.
struct PieceFlops {
  int64_t forward = 0;
  int64_t mixing = 0;   // the part of `forward` without weights: attention scores and the scan
  int64_t adapter = 0;  // the part of `forward` with weights of adapters
};

// `sequence`: tokens of a sample. An encoder of which the data says nothing counts 0.
PieceFlops FlopsOf(const ModelStatement& statement, const StatedPiece& piece, const Module& module,
                   const ModelNumbers& numbers, const DataPlan& data, int64_t sequence);

}  // namespace planwright
