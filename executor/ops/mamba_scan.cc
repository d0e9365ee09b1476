// The Mamba-2 scan over chunks of positions, forward and backward (docs/model/mamba.md#scan). scan_chunks.h has the
// recursion, the notation and the chunked tensors that both share.
//
//   mamba_scan        xbc [S,B,inner+2 bc], zxbcdt [S,B,*] -> y [S,B,inner], states [K,B,heads,p,n]
//                     parameters A_log, D, dt_bias [heads]
//   mamba_scan_grad   dy, xbc, zxbcdt, states -> dxbc, ddt [S,B,heads]; adds to the gradients of A_log, D, dt_bias
//
// With packed documents document_ends is the last input, and the state starts at zero in every document. With
// parameter_cp the heads are those of this cp rank, the parameters those of all (parameter_part.h).
//
// Everything is computed in fp32 (fp64 for fp64 inputs); y, dxbc and ddt are rounded to the dtype of the inputs, states
// stay wide. The backward reads the inputs and the states at the chunks' starts, and computes everything else of a
// chunk again (docs/model/mamba.md#backward).
#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>

#include "executor/ops/parameter_part.h"
#include "executor/ops/scan_chunks.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// What is left of each chunk's start state at its end, [K,B,g,r*p,1].
at::Tensor KeptOfStates(const ScanSizes& z, const ScanChunks& chunks) {
  return chunks.Through().expand({z.K, z.B, z.g, z.r, z.p}).reshape({z.K, z.B, z.g, z.r * z.p, 1});
}

// The state at the start of each chunk, [K,B,g,r*p,n]. The first is zero: a sequence starts without a state.
at::Tensor ChunkStates(const ScanSizes& z, const ScanChunks& chunks, const at::Tensor& u) {
  const at::Tensor to_end = TimesPerHead(z, u, chunks.ToEnd());
  const at::Tensor added = at::matmul(to_end.transpose(3, 4), chunks.b);  // by each chunk to the state at its end
  const at::Tensor keep = KeptOfStates(z, chunks);
  const at::Tensor states = at::empty_like(added);
  states[0].zero_();
  // The only loop over positions: each chunk needs the state of the one before.
  for (int64_t k = 1; k < z.K; ++k) {
    at::Tensor state = states[k];
    at::addcmul_out(state, added[k - 1], keep[k - 1], states[k - 1]);
  }
  return states;
}

// --- backward. dX is the gradient of X.

// Gradients of the chunked tensors. `decay` collects the gradients of all exponents: of exp(decay_i - decay_j),
// exp(decay_i) and exp(total - decay_j).
struct ScanGradients {
  at::Tensor u;      // [K,B,g,Q,r*p]
  at::Tensor b, c;   // [K,B,g,Q,n]
  at::Tensor decay;  // [K,B,g,r,Q]
};

// The sum over p of [K,B,g,Q,r*p], as [K,B,g,r,Q].
at::Tensor PerHead(const ScanSizes& z, const at::Tensor& x) {
  return x.view({z.K, z.B, z.g, z.Q, z.r, z.p}).sum(-1).transpose(3, 4);
}

// Through y_i += sum_j (C_i . B_j) exp(decay_i - decay_j) u_j, over j <= i of the same chunk.
ScanGradients WithinChunks(const ScanSizes& z, const ScanChunks& chunks, const at::Tensor& u, const at::Tensor& dy) {
  const at::Tensor decays = chunks.Within();
  const at::Tensor seen = at::matmul(chunks.c, chunks.b.transpose(3, 4)).unsqueeze(3) * decays;
  const at::Tensor dy_heads = ByHead(z, dy);
  const at::Tensor dseen = at::matmul(dy_heads, ByHead(z, u).transpose(4, 5));
  const at::Tensor dproduct = (dseen * decays).sum(3);  // over the heads of a group
  // The exponent decay_i - decay_i is 0 for every A, so it has no gradient. In the difference below the two sums over
  // it would cancel only up to rounding, hence tril_(-1) and not tril_().
  const at::Tensor dexponent = (dseen * seen).tril_(-1);
  return {ByGroup(z, at::matmul(seen.transpose(4, 5), dy_heads)), at::matmul(dproduct.transpose(3, 4), chunks.c),
          at::matmul(dproduct, chunks.b), dexponent.sum(-1) - dexponent.sum(-2)};
}

// The gradient of the state at each chunk's end, [K,B,g,r*p,n]. `start`: the gradient of each chunk's start state
// through the outputs of that chunk. Runs from the last chunk to the first: later chunks read the state that earlier
// ones made.
at::Tensor EndStateGradients(const ScanSizes& z, const at::Tensor& start, const at::Tensor& keep) {
  const at::Tensor end = at::empty_like(start);
  end[z.K - 1].zero_();
  for (int64_t k = z.K - 1; k > 0; --k) {
    at::Tensor before = end[k - 1];
    at::addcmul_out(before, start[k], keep[k], end[k]);
  }
  return end;
}

// Through each chunk's start state, and through the state that it passes to the next chunk.
void AddBetweenChunks(const ScanSizes& z, const ScanChunks& chunks, const at::Tensor& u, const at::Tensor& states,
                      const at::Tensor& dy, ScanGradients& gradients) {
  // y_i += exp(decay_i) C_i . state
  const at::Tensor dread = TimesPerHead(z, dy, chunks.FromStart());
  gradients.c.add_(at::matmul(dread, states));
  gradients.decay.add_(PerHead(z, dread * at::matmul(chunks.c, states.transpose(3, 4))));
  const at::Tensor dstart = at::matmul(dread.transpose(3, 4), chunks.c);

  // state' = exp(total) state + sum_j exp(total - decay_j) u_j B_j
  const at::Tensor keep = KeptOfStates(z, chunks);
  const at::Tensor dend = EndStateGradients(z, dstart, keep);
  const at::Tensor left = chunks.ToEnd();
  const at::Tensor u_left = TimesPerHead(z, u, left);
  const at::Tensor du_left = at::matmul(chunks.b, dend.transpose(3, 4));
  gradients.u.add_(TimesPerHead(z, du_left, left));
  gradients.b.add_(at::matmul(u_left, dend));
  const at::Tensor dleft = PerHead(z, du_left * u_left);
  // total - decay_j is 0 at the last position for every A: as above, its gradient is left out, not cancelled.
  dleft.select(-1, z.Q - 1).zero_();
  gradients.decay.sub_(dleft);
  const at::Tensor dkeep = (dend * states).mul_(keep).view({z.K, z.B, z.g, z.r, z.p * z.n}).sum(-1);
  gradients.decay.select(-1, z.Q - 1).add_(dkeep).add_(dleft.sum(-1));
}

ParameterPart HeadsPart(const ComputeContext& context) {
  return ParameterPart(context, {context.instruction.integer("heads")});
}

// A_log, D and dt_bias of this rank's heads.
Tensors OwnParameters(const ComputeContext& context) {
  const ParameterPart own = HeadsPart(context);
  return {own.Of(context.parameters[0]), own.Of(context.parameters[1]), own.Of(context.parameters[2])};
}

}  // namespace

Tensors RunMambaScan(const ComputeContext& context) {
  const at::Tensor& xbc = context.inputs[0];
  const ScanSizes z(context, xbc);
  const Tensors parameters = OwnParameters(context);
  const ScanChunks chunks(z, xbc, context.inputs[1], parameters,
                          context.inputs.size() > 2 ? &context.inputs[2] : nullptr);
  const at::Tensor u = TimesPerHead(z, chunks.x, chunks.dt.transpose(3, 4));
  const at::Tensor states = ChunkStates(z, chunks, u);

  // First what the chunk's start state contributes, then what the positions of the chunk itself contribute.
  at::Tensor y = TimesPerHead(z, at::matmul(chunks.c, states.transpose(3, 4)), chunks.FromStart());
  const at::Tensor seen = at::matmul(chunks.c, chunks.b.transpose(3, 4)).unsqueeze(3) * chunks.Within();
  y.add_(ByGroup(z, at::matmul(seen, ByHead(z, u))));
  const at::Tensor skip =
      Wide(parameters[1]).view({z.g, 1, z.r, 1}).expand({z.g, 1, z.r, z.p}).reshape({z.g, 1, z.r * z.p});
  y.addcmul_(chunks.x, skip);
  return {Narrow(FromChunks(z, y), xbc), states.view({z.K, z.B, z.g * z.r, z.p, z.n})};
}

Tensors RunMambaScanGrad(const ComputeContext& context) {
  const at::Tensor& xbc = context.inputs[1];
  const ScanSizes z(context, xbc);
  const Tensors parameters = OwnParameters(context);
  const ScanChunks chunks(z, xbc, context.inputs[2], parameters,
                          context.inputs.size() > 4 ? &context.inputs[4] : nullptr);
  const at::Tensor dy = ToChunks(z, Wide(context.inputs[0]));
  const at::Tensor by_position = chunks.dt.transpose(3, 4);  // [K,B,g,r,Q]
  const at::Tensor u = TimesPerHead(z, chunks.x, by_position);
  ScanGradients gradients = WithinChunks(z, chunks, u, dy);
  AddBetweenChunks(z, chunks, u, context.inputs[3].view({z.K, z.B, z.g, z.r * z.p, z.n}), dy, gradients);

  // decay_i is the sum of dt_j A over j <= i, so the gradient of dt_j A sums those of all decay_i behind it. And u = dt
  // x.
  const at::Tensor da = gradients.decay.flip(-1).cumsum(-1).flip(-1);
  const at::Tensor a = chunks.a.view({z.g, z.r, 1});
  const at::Tensor ddt = (PerHead(z, gradients.u * chunks.x) + da * a).transpose(3, 4);
  const at::Tensor draw = FromChunks(z, ddt) * chunks.raw_dt.sigmoid();
  const at::Tensor skip =
      Wide(parameters[1]).view({z.g, 1, z.r, 1}).expand({z.g, 1, z.r, z.p}).reshape({z.g, 1, z.r * z.p});
  const at::Tensor dx = TimesPerHead(z, gradients.u, by_position).addcmul_(dy, skip);

  if (context.learns()) {
    const ParameterPart own = HeadsPart(context);
    own.AddTo(context.gradients[0], (da * by_position).sum(at::IntArrayRef({0, 1, 4})).view({-1}) *
                                        chunks.a);  // A = -exp(A_log), so dA/dA_log = A
    own.AddTo(context.gradients[1], PerHead(z, dy * chunks.x).sum(at::IntArrayRef({0, 1, 4})).view({-1}));
    own.AddTo(context.gradients[2], draw.sum(at::IntArrayRef({0, 1})));
  }
  const at::Tensor dxbc = at::cat({FromChunks(z, dx), FromChunks(z, gradients.b), FromChunks(z, gradients.c)}, 2);
  return {Narrow(dxbc, xbc), Narrow(draw, context.inputs[2])};
}

}  // namespace planwright::executor::ops
