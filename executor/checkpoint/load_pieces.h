// Copies pieces of a checkpoint to where a rank keeps them. Resuming a run and starting one from another run's
// checkpoint share it.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"
#include "planner/checkpoint/pieces.h"
#include "planner/checkpoint/shard_reader.h"

namespace planwright::executor {

// Reads each piece from the tensor under its key and converts it to the type that the rank has, on `threads` threads.
// Weights, masters and buffers must be finite numbers. DataLoss, with file and tensor, if a byte is damaged or such a
// number is not finite; the module is then half filled.
absl::Status LoadPieces(CheckpointReader& reader, const std::vector<CheckpointPiece>& pieces, int threads,
                        ModuleState& module);

// "fp32[64,48]"
std::string TypeText(DType dtype, const std::vector<int64_t>& shape);
// InvalidArgument that lists the problems of a checkpoint that does not fit the plan; OK if there are none.
absl::Status MisfitOf(const std::string& folder, std::vector<std::string> problems);

}  // namespace planwright::executor
