// Forward of the chunked Mamba-2 scan; see scan_chunks.h.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>

#include "executor/ops/numerics.h"
#include "executor/ops/scan_chunks.h"

namespace planwright::executor::ops {
namespace {

// State at the start of each chunk, [K,B,g,r*p,n], the first being zero.
at::Tensor ChunkStates(const ScanSizes& z, const ScanChunks& chunks, const at::Tensor& u) {
  const at::Tensor total = chunks.decay.narrow(-1, z.Q - 1, 1);  // [K,B,g,r,1]
  const at::Tensor to_end = TimesPerHead(z, u, (total - chunks.decay).exp_());
  const at::Tensor made = at::matmul(to_end.transpose(3, 4), chunks.b);  // what a chunk adds to the state at its end
  const at::Tensor keep = total.exp().expand({z.K, z.B, z.g, z.r, z.p}).reshape({z.K, z.B, z.g, z.r * z.p, 1});
  const at::Tensor states = at::empty_like(made);
  states[0].zero_();
  for (int64_t k = 1; k < z.K; ++k) {
    at::Tensor state = states[k];
    at::addcmul_out(state, made[k - 1], keep[k - 1], states[k - 1]);
  }
  return states;
}

}  // namespace

Tensors RunMambaScan(const ComputeContext& context) {
  const at::Tensor& xbc = context.inputs[0];
  const ScanSizes z(context, xbc);
  const ScanChunks chunks(z, xbc, context.inputs[1], context.parameters);
  const at::Tensor u = TimesPerHead(z, chunks.x, chunks.dt.transpose(3, 4));
  const at::Tensor states = ChunkStates(z, chunks, u);

  // From the chunk's start state, then from the positions of the chunk itself.
  at::Tensor y = TimesPerHead(z, at::matmul(chunks.c, states.transpose(3, 4)), chunks.decay.exp());
  const at::Tensor seen = at::matmul(chunks.c, chunks.b.transpose(3, 4)).unsqueeze(3) * DecayMatrix(chunks.decay);
  y.add_(ByGroup(z, at::matmul(seen, ByHead(z, u))));
  const at::Tensor skip =
      Wide(context.parameters[1]).view({z.g, 1, z.r, 1}).expand({z.g, 1, z.r, z.p}).reshape({z.g, 1, z.r * z.p});
  y.addcmul_(chunks.x, skip);
  return {Narrow(FromChunks(z, y), xbc), states.view({z.K, z.B, z.g * z.r, z.p, z.n})};
}

}  // namespace planwright::executor::ops
