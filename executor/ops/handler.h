// What a compute handler gets and returns. A handler is a function of its inputs, its parameters, the instruction's
// attributes and the context of the call, and of nothing else: it keeps no state and never communicates. It returns its
// outputs as new tensors and adds to the gradients that it is given. It may read attributes of the instruction but not
// the names of its operands: operands come by position. docs/operations.md lists all operations with shapes and
// meanings.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

using Tensors = std::vector<at::Tensor>;

// Where in the run a block is called. Constant during one call.
struct CallContext {
  const Plan* plan = nullptr;
  const Module* module = nullptr;  // of the block; null: of none
  int rank = 0;
  int tp = 1, tp_rank = 0;  // size of the module's tp axis, and this rank's coordinate
  int cp = 1, cp_rank = 0;  // the same of its cp axis
  int ep = 1, ep_rank = 0;  // the same of its ep axis
  int lanes = 1, lane = 0;  // size of the module's dp axis, and this rank's coordinate
  int layer = -1;           // N of the frame "MODULE.layers.N"; -1 for other frames
  int64_t step = 0;         // from 0; in an evaluation the round of its set, from 0
  int microbatch = 0;
  int evaluation = -1;  // index of a set of Plan::evaluation; -1: in no evaluation

  // Size of an axis that cuts values of blocks (tp or cp), and this rank's coordinate. c10::Error for another axis.
  struct AxisCoordinate {
    int64_t size = 1, coordinate = 0;
  };
  AxisCoordinate CoordinateAlong(std::string_view axis) const;

  // Global numbers of the samples of this lane in the microbatch: microbatch m of step t is a block of consecutive
  // samples, which is dealt to the lanes in consecutive parts (docs/training/data.md#lanes). Round r of an evaluation
  // set is block r of the samples of the set.
  LaneSamples lane_samples() const;
};

// A data instruction in a call.
struct DataRead {
  const Instruction* instruction = nullptr;
  CallContext call;
};

struct ComputeContext {
  const Instruction& instruction;
  const CallContext& call;
  const Tensors& inputs;      // in the order of the operation's signature
  const Tensors& parameters;  // Instruction::parameters, in order
  const Tensors& gradients;   // Instruction::gradients, in order: add in place
  bool overwrites = false;    // whether the output takes over the memory of an input (`overwrites` in ops.def)
  // The first addition of the step to its gradients: they are written, and what was there is not read
  // (planner/plan/link/first_additions.h, which has the kinds of which every form does so).
  bool writes_gradients = false;

  // Memory for the output of an instruction that may overwrite input `index`: the input itself, or a new tensor like
  // it.
  at::Tensor OutputOver(size_t index) const;
  // False in a frozen part: a backward then makes only the gradients of its inputs.
  bool learns() const { return !gradients.empty(); }
};

using ComputeHandler = Tensors (*)(const ComputeContext&);

// The plain form of a compute instruction (forms.h); null for kinds of other classes.
ComputeHandler PlainFormOf(OpKind kind);

// The plain forms, called Run<Kind>, in the file of their family. PlainFormOf refers to all of them, so a missing one
// is a link error.
namespace ops {
#define COMPUTE_HANDLER(id) Tensors Run##id(const ComputeContext& context);
#define OP(id, name, op_class, text) OP_##op_class(id)
#define OP_kControl(id)
#define OP_kData(id)
#define OP_kCompute(id) COMPUTE_HANDLER(id)
#define OP_kCommunication(id)
#define OP_kState(id)
#define OP_kStorage(id)
#include "planner/plan/ops.def"
#undef OP_kControl
#undef OP_kData
#undef OP_kCompute
#undef OP_kCommunication
#undef OP_kState
#undef OP_kStorage
#undef OP
#undef COMPUTE_HANDLER
}  // namespace ops

}  // namespace planwright::executor
