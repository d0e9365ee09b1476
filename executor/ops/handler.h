// What a compute handler is given and gives back. A handler is a pure function of its inputs and parameters, and adds
// to the gradients it is handed; it sees no communicator, no name of a value and no other rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

using Tensors = std::vector<at::Tensor>;

// Where in the run a block is called. Constant during one call.
struct CallContext {
  const Plan* plan = nullptr;
  const Module* module = nullptr;  // the block's module
  int rank = 0;
  int tp = 1, tp_rank = 0;  // of the module's grid
  int lanes = 1, lane = 0;  // its dp size and this rank's coordinate
  int layer = -1;           // index of the frame "MODULE.layers.N"; -1 for other frames
  int64_t step = 0;         // from 0
  int microbatch = 0;

  // First sample number of the microbatch's block, and this lane's part of it (Plan: SamplesOfLane).
  int64_t block_first_sample() const;
  LaneSamples lane_samples() const;  // global sample numbers
};

struct ComputeContext {
  const Instruction& instruction;
  const CallContext& call;
  const Tensors& inputs;      // in the order of the op's signature
  const Tensors& parameters;  // Instruction::parameters, in order
  const Tensors& gradients;   // Instruction::gradients, in order: add in place
};

// One handler per kCompute kind, named Run<Kind>, in the file of its family: op_table.cc refers to all of them, so none
// can be missing.
namespace ops {
#define COMPUTE_HANDLER(id) Tensors Run##id(const ComputeContext& context);
#define OP(id, name, op_class, text) OP_##op_class(id)
#define OP_kControl(id)
#define OP_kData(id)
#define OP_kCompute(id) COMPUTE_HANDLER(id)
#define OP_kCommunication(id)
#define OP_kState(id)
#include "planner/plan/ops.def"
#undef OP_kControl
#undef OP_kData
#undef OP_kCompute
#undef OP_kCommunication
#undef OP_kState
#undef OP
#undef COMPUTE_HANDLER
}  // namespace ops

}  // namespace planwright::executor
