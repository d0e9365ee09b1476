// Tensors of a folder, made of a checkpoint's: read, proved, put in order and rounded piece by piece.
#pragma once

#include "planner/exchange/out_tensor.h"
#include "planner/exchange/run_model.h"
#include "planner/state/checkpoint/shard_reader.h"

namespace planwright {

// `dtype`: of weights. The reader outlives the tensor.
OutTensor FromCheckpoint(CheckpointReader& reader, LeavingTensor leaving, DType dtype);

}  // namespace planwright
