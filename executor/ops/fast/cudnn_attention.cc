#include "executor/ops/fast/cudnn_attention.h"

#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/empty.h>

#include <optional>

namespace planwright::executor::ops {
namespace {

// cuDNN takes [batch, heads, positions, head_dim], in any strides.
at::Tensor ByHeads(const at::Tensor& x) { return x.transpose(1, 2); }

}  // namespace

bool TakesCudnn(const FlashOperands& x) {
  // cuDNN 9 and Hopper, or later. It takes sequences of any length but 1, and these head dims.
  const at::Context& context = at::globalContext();
  return x.k.size(1) > 1 && x.q.size(3) % 8 == 0 && x.q.size(3) <= 128 && !context.deterministicAlgorithms() &&
         at::Context::versionCuDNN() >= 90000 && at::cuda::getCurrentDeviceProperties()->major >= 9;
}

FlashResult CudnnForward(const FlashOperands& x, bool causal) {
  const auto result = at::_scaled_dot_product_cudnn_attention(ByHeads(x.q), ByHeads(x.k), ByHeads(x.v), std::nullopt,
                                                              /*compute_log_sumexp=*/true, /*dropout_p=*/0, causal,
                                                              /*return_debug_mask=*/false, x.scale);
  return {ByHeads(std::get<0>(result)), std::get<1>(result).view({x.q.size(0), x.q.size(2), x.q.size(1)})};
}

FlashGradients CudnnBackward(const FlashOperands& x, bool causal, const at::Tensor& da, const FlashResult& forward) {
  // The random state of dropout is not read where there is none.
  const at::Tensor no_dropout = at::empty({}, x.q.options().dtype(at::kLong));
  const at::Tensor lse = forward.lse.contiguous().view({x.q.size(0), x.q.size(2), x.q.size(1), 1});
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      ByHeads(da), ByHeads(x.q), ByHeads(x.k), ByHeads(x.v), ByHeads(forward.a), lse, no_dropout, no_dropout,
      /*attn_bias=*/{}, /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, x.q.size(1), x.k.size(1), /*dropout_p=*/0, causal, x.scale);
  return {ByHeads(dq), ByHeads(dk), ByHeads(dv)};
}

}  // namespace planwright::executor::ops
