// Backward of the chunked Mamba-2 scan; see scan_chunks.h. Notation: dX is the gradient of X; `decay` collects the
// gradients of all exponents exp(decay_i - decay_j), exp(decay_i) and exp(total - decay_j).
#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>

#include "executor/ops/numerics.h"
#include "executor/ops/scan_chunks.h"

namespace planwright::executor::ops {
namespace {

// Gradients of the scan's chunked quantities.
struct ScanGradients {
  at::Tensor u;      // [K,B,g,Q,r*p]
  at::Tensor b, c;   // [K,B,g,Q,n]
  at::Tensor decay;  // [K,B,g,r,Q]
};

// Sum over p of [K,B,g,Q,r*p], as [K,B,g,r,Q].
at::Tensor PerHead(const ScanSizes& z, const at::Tensor& x) {
  return x.view({z.K, z.B, z.g, z.Q, z.r, z.p}).sum(-1).transpose(3, 4);
}

// y_i += sum_j (C_i . B_j) exp(decay_i - decay_j) u_j, over j <= i of the same chunk.
ScanGradients WithinChunks(const ScanSizes& z, const ScanChunks& chunks, const at::Tensor& u, const at::Tensor& dy) {
  const at::Tensor decays = DecayMatrix(chunks.decay);
  const at::Tensor seen = at::matmul(chunks.c, chunks.b.transpose(3, 4)).unsqueeze(3) * decays;
  const at::Tensor dy_heads = ByHead(z, dy);
  const at::Tensor dseen = at::matmul(dy_heads, ByHead(z, u).transpose(4, 5));
  const at::Tensor dproduct = (dseen * decays).sum(3);  // over the heads of a group
  // A position's exponent towards itself is 0 whatever A is: left in, it would cancel only up to rounding.
  const at::Tensor dexponent = (dseen * seen).tril_(-1);
  return {ByGroup(z, at::matmul(seen.transpose(4, 5), dy_heads)), at::matmul(dproduct.transpose(3, 4), chunks.c),
          at::matmul(dproduct, chunks.b), dexponent.sum(-1) - dexponent.sum(-2)};
}

// Gradient of the state at each chunk's end, [K,B,g,r*p,n]: `start` is what the chunk itself does with its start state.
at::Tensor EndStateGradients(const ScanSizes& z, const at::Tensor& start, const at::Tensor& keep) {
  const at::Tensor end = at::empty_like(start);
  end[z.K - 1].zero_();
  for (int64_t k = z.K - 1; k > 0; --k) {
    at::Tensor before = end[k - 1];
    at::addcmul_out(before, start[k], keep[k], end[k]);
  }
  return end;
}

// Through the chunk's start state and the state it hands on.
void AddBetweenChunks(const ScanSizes& z, const ScanChunks& chunks, const at::Tensor& u, const at::Tensor& states,
                      const at::Tensor& dy, ScanGradients& gradients) {
  // y_i += exp(decay_i) C_i . state
  const at::Tensor dread = TimesPerHead(z, dy, chunks.decay.exp());
  gradients.c.add_(at::matmul(dread, states));
  gradients.decay.add_(PerHead(z, dread * at::matmul(chunks.c, states.transpose(3, 4))));
  const at::Tensor dstart = at::matmul(dread.transpose(3, 4), chunks.c);

  // state' = exp(total) state + sum_j exp(total - decay_j) u_j B_j
  const at::Tensor total = chunks.decay.narrow(-1, z.Q - 1, 1);
  const at::Tensor keep = total.exp().expand({z.K, z.B, z.g, z.r, z.p}).reshape({z.K, z.B, z.g, z.r * z.p, 1});
  const at::Tensor dend = EndStateGradients(z, dstart, keep);
  const at::Tensor left = (total - chunks.decay).exp_();
  const at::Tensor u_left = TimesPerHead(z, u, left);
  const at::Tensor du_left = at::matmul(chunks.b, dend.transpose(3, 4));
  gradients.u.add_(TimesPerHead(z, du_left, left));
  gradients.b.add_(at::matmul(u_left, dend));
  const at::Tensor dleft = PerHead(z, du_left * u_left);
  dleft.select(-1, z.Q - 1).zero_();  // nothing is left to decay: as above
  gradients.decay.sub_(dleft);
  const at::Tensor dkeep = (dend * states).mul_(keep).view({z.K, z.B, z.g, z.r, z.p * z.n}).sum(-1);
  gradients.decay.select(-1, z.Q - 1).add_(dkeep).add_(dleft.sum(-1));
}

}  // namespace

Tensors RunMambaScanGrad(const ComputeContext& context) {
  const at::Tensor& xbc = context.inputs[1];
  const ScanSizes z(context, xbc);
  const ScanChunks chunks(z, xbc, context.inputs[2], context.parameters);
  const at::Tensor dy = ToChunks(z, Wide(context.inputs[0]));
  const at::Tensor by_position = chunks.dt.transpose(3, 4);  // [K,B,g,r,Q]
  const at::Tensor u = TimesPerHead(z, chunks.x, by_position);
  ScanGradients gradients = WithinChunks(z, chunks, u, dy);
  AddBetweenChunks(z, chunks, u, context.inputs[3].view({z.K, z.B, z.g, z.r * z.p, z.n}), dy, gradients);

  // decay_i is the sum of dt_j A up to i; u = dt x.
  const at::Tensor da = gradients.decay.flip(-1).cumsum(-1).flip(-1);
  const at::Tensor a = chunks.a.view({z.g, z.r, 1});
  const at::Tensor ddt = (PerHead(z, gradients.u * chunks.x) + da * a).transpose(3, 4);
  const at::Tensor draw = FromChunks(z, ddt) * chunks.raw_dt.sigmoid();
  const at::Tensor skip =
      Wide(context.parameters[1]).view({z.g, 1, z.r, 1}).expand({z.g, 1, z.r, z.p}).reshape({z.g, 1, z.r * z.p});
  const at::Tensor dx = TimesPerHead(z, gradients.u, by_position).addcmul_(dy, skip);

  context.gradients[0].add_((da * by_position).sum(at::IntArrayRef({0, 1, 4})).view({-1}) * chunks.a);  // dA/dA_log = A
  context.gradients[1].add_(PerHead(z, dy * chunks.x).sum(at::IntArrayRef({0, 1, 4})).view({-1}));
  context.gradients[2].add_(draw.sum(at::IntArrayRef({0, 1})));
  const at::Tensor dxbc = at::cat({FromChunks(z, dx), FromChunks(z, gradients.b), FromChunks(z, gradients.c)}, 2);
  return {Narrow(dxbc, xbc), Narrow(draw, context.inputs[2])};
}

}  // namespace planwright::executor::ops
