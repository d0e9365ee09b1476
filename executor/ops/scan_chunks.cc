#include "executor/ops/scan_chunks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/ones.h>

#include <limits>

#include "executor/ops/documents.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// log(1 + exp(x)) without overflow for large x. LibTorch's softplus returns x itself above a threshold, which is not
// exact in fp64.
at::Tensor Softplus(const at::Tensor& x) { return x.clamp_min(0) + x.abs().neg_().exp_().log1p_(); }

constexpr double kNever = -std::numeric_limits<double>::infinity();  // the logarithm of 0

// [K,Q] as [K,B,g,r,Q], for any samples, groups and heads.
at::Tensor PerPosition(const at::Tensor& x) { return x.view({x.size(0), 1, 1, 1, x.size(1)}); }

}  // namespace

ScanSizes::ScanSizes(const ComputeContext& context, const at::Tensor& xbc)
    : S(xbc.size(0)), B(xbc.size(1)), g(context.instruction.integer("groups")),
      r(context.instruction.integer("heads") / g), p(context.instruction.integer("inner") / (g * r)),
      n(context.instruction.integer("state")), Q(std::min(context.instruction.integer("chunk"), S)), K((S + Q - 1) / Q),
      inner(g * r * p) {
  TORCH_CHECK(xbc.size(2) == inner + 2 * g * n, "xbc has width ", xbc.size(2),
              ", expected inner + 2 bc = ", inner + 2 * g * n);
}

at::Tensor ToChunks(const ScanSizes& z, const at::Tensor& x) {
  const int64_t width = x.size(2) / z.g, padding = z.K * z.Q - z.S;
  const at::Tensor whole = padding == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, 0, 0, padding});
  return whole.reshape({z.K, z.Q, z.B, z.g, width}).permute({0, 2, 3, 1, 4}).contiguous();
}

at::Tensor FromChunks(const ScanSizes& z, const at::Tensor& x) {
  return x.permute({0, 3, 1, 2, 4}).reshape({z.K * z.Q, z.B, z.g * x.size(4)}).narrow(0, 0, z.S);
}

ScanChunks::ScanChunks(const ScanSizes& z, const at::Tensor& xbc, const at::Tensor& zxbcdt, const Tensors& parameters,
                       const at::Tensor* document_ends) {
  const int64_t bc = z.g * z.n, heads = z.g * z.r;
  x = ToChunks(z, Wide(xbc.narrow(2, 0, z.inner)));
  b = ToChunks(z, Wide(xbc.narrow(2, z.inner, bc)));
  c = ToChunks(z, Wide(xbc.narrow(2, z.inner + bc, bc)));
  raw_dt = Wide(zxbcdt.narrow(2, zxbcdt.size(2) - heads, heads)) + parameters[2];
  dt = ToChunks(z, Softplus(raw_dt));
  a = Wide(parameters[0]).exp().neg_();
  decay = (dt * a.view({z.g, 1, z.r})).transpose(3, 4).cumsum(-1);
  if (document_ends == nullptr) return;
  // The positions that fill the last chunk belong to the last document.
  document_ = at::constant_pad_nd(DocumentOfPosition(*document_ends, z.S, xbc.device()), {0, z.K * z.Q - z.S},
                                  document_ends->size(0) - 1)
                  .view({z.K, z.Q});
}

// Exponents are masked before the exponential, not after: above the diagonal of Within the difference is positive and
// exp may overflow to infinity, and infinity times 0 is not a number.
at::Tensor ScanChunks::Within() const {
  const int64_t K = decay.size(0), Q = decay.size(-1);
  at::Tensor unseen = at::ones({Q, Q}, decay.options().dtype(at::kBool)).triu_(1);
  if (document_.defined())
    unseen = unseen.logical_or(document_.unsqueeze(2) != document_.unsqueeze(1)).view({K, 1, 1, 1, Q, Q});
  return (decay.unsqueeze(-1) - decay.unsqueeze(-2)).masked_fill_(unseen, kNever).exp_();
}

at::Tensor ScanChunks::FromStart() const {
  if (!document_.defined()) return decay.exp();
  // The document of the position before the chunk. Before the first chunk there is none, and its start state is zero.
  const at::Tensor before = document_.select(1, document_.size(1) - 1).roll({1}, {0}).unsqueeze(1);
  return decay.masked_fill(PerPosition(document_ != before), kNever).exp_();
}

at::Tensor ScanChunks::ToEnd() const {
  const int64_t last = decay.size(-1) - 1;
  at::Tensor left = decay.narrow(-1, last, 1) - decay;
  if (document_.defined()) left.masked_fill_(PerPosition(document_ != document_.narrow(1, last, 1)), kNever);
  return left.exp_();
}

at::Tensor ScanChunks::Through() const { return FromStart().narrow(-1, decay.size(-1) - 1, 1); }

at::Tensor ByHead(const ScanSizes& z, const at::Tensor& x) {
  return x.reshape({z.K, z.B, z.g, z.Q, z.r, x.size(4) / z.r}).transpose(3, 4);
}

at::Tensor ByGroup(const ScanSizes& z, const at::Tensor& x) {
  return x.transpose(3, 4).reshape({z.K, z.B, z.g, z.Q, z.r * x.size(5)});
}

at::Tensor TimesPerHead(const ScanSizes& z, const at::Tensor& x, const at::Tensor& factor) {
  return (x.view({z.K, z.B, z.g, z.Q, z.r, z.p}) * factor.transpose(3, 4).unsqueeze(-1)).view(x.sizes());
}

}  // namespace planwright::executor::ops
