// Rotary position embedding (docs/model/decoder.md#rotary-embedding). The features of x are those of q_heads query
// heads, then of k_heads key heads, then of v_heads value heads, which pass. In each query and key head the features j
// and j + rotary/2 are a point of a plane, which turns by positions * w(j); those from `rotary` on pass.
//
//   rope        x [t,b,f], positions i64 [A,t,b] -> y [t,b,f]
//   rope_grad   dy, positions -> dx, the rotation back
//
// A is 1. Where planes turn by rows and columns of image tokens too, it is 3 (RopeSpeeds::axis).
//
// Angles are fp64 on every device: at position 131,072 an angle in fp32 is off by 0.008. Their cosines and sines have
// the wide type, and so has the arithmetic. y has the dtype of x, and where x dies there its memory.
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>

#include "executor/base/tensors.h"
#include "executor/ops/handler.h"
#include "executor/ops/rope_speeds.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/turn_planes.h"

namespace planwright::executor::ops {
namespace {

// `way`: 1 forward, -1 back.
at::Tensor Turned(const ComputeContext& context, int way) {
  const at::Tensor &x = context.inputs[0], &positions = context.inputs[1];
  const Instruction& instruction = context.instruction;
  const int64_t head_dim = instruction.integer("head_dim"), rotary = instruction.integer("rotary"),
                turning = instruction.integer("q_heads") + instruction.integer("k_heads"),
                heads = turning + instruction.integer("v_heads");
  const RopeSpeeds speeds(instruction);
  TORCH_CHECK(x.size(2) == heads * head_dim && rotary % 2 == 0 && rotary <= head_dim &&
                  positions.size(0) == (speeds.several ? 3 : 1),
              "features of ", x.sizes(), " and positions of ", positions.sizes(), " for ", heads, " heads of ",
              head_dim, ", of which ", rotary, " turn");
  const at::Tensor speed = ToDevice(at::tensor(speeds.of, at::kDouble), x.device());
  const at::Tensor own = speeds.several ? positions.index_select(0, Indices(speeds.axis, x.device())).movedim(0, -1)
                                        : positions[0].unsqueeze(-1);
  const at::Tensor angle = own.to(at::kDouble) * speed;  // [t,b,rotary/2]
  const at::Tensor cosine = (angle.cos() * speeds.amplitude).to(WideType(x)).unsqueeze(2),
                   sine = (angle.sin() * (way * speeds.amplitude)).to(WideType(x)).unsqueeze(2);

  const at::Tensor y = context.OutputOver(0);
  if (!context.overwrites) y.copy_(x);
  const at::Tensor turn = y.view({x.size(0), x.size(1), heads, head_dim}).narrow(2, 0, turning);
  TurnPlanes(turn.narrow(3, 0, rotary / 2), turn.narrow(3, rotary / 2, rotary / 2), cosine, sine);
  return y;
}

}  // namespace

Tensors RunRope(const ComputeContext& context) { return {Turned(context, 1)}; }
Tensors RunRopeGrad(const ComputeContext& context) { return {Turned(context, -1)}; }

}  // namespace planwright::executor::ops
