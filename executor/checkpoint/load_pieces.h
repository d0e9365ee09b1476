// Copies pieces of tensors to where a rank keeps them: the one way in which weights come into a run, from its own
// checkpoints, from those of others, and from published files.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"
#include "planner/state/checkpoint/element_reader.h"
#include "planner/state/checkpoint/pieces.h"

namespace planwright::executor {

// A piece, and where its elements come from.
struct PieceToLoad {
  const CheckpointPiece* piece = nullptr;
  ElementReader* reader = nullptr;  // null: they are drawn
};

// Writes the elements of `run` of a piece that is drawn to the 1-D host tensor `out`.
using DrawPiece = std::function<void(const CheckpointPiece& piece, const ElementRun& run, const at::Tensor& out)>;

// Fills each piece from the tensor under its key, converted to the type that the rank has, on `threads` threads. No
// more than a few MB of each thread are in memory beside the module. Weights, masters and buffers must be finite
// numbers, and nothing may be too large for the type that the rank has. A status for each piece, in their order: as
// ElementReader::Read has it. After an error the module is half filled.
std::vector<absl::Status> LoadPieces(const std::vector<PieceToLoad>& pieces, const DrawPiece& draw, int threads,
                                     ModuleState& module);

// InvalidArgument that lists the problems of a checkpoint that does not fit the plan; OK if there are none.
absl::Status MisfitOf(const std::string& folder, std::vector<std::string> problems);

}  // namespace planwright::executor
