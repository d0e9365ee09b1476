// The vision encoder's attention in bf16, by kernels that take all images at once. Without cp these are our own kernels
// for Hopper (executor/kernels/attention.h), or, if all images of the run have one size, so that they are a batch,
// cuDNN's (cudnn_attention.h), which has one program for each number of images. Otherwise it is LibTorch's flash kernel
// for sequences of different lengths. executor/ops/vision_attention.cc has the plain form, which defines operands and
// results.
#include "executor/ops/packed_attention.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "executor/base/tensors.h"
#include "executor/kernels/attention.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/cudnn_attention.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/fast/planned_types.h"
#include "planner/plan/sample_images.h"

namespace planwright::executor::ops {
namespace {

// Images of as many rows each that follow each other.
std::vector<EqualSequences> RunsOf(const PackedAttention& attention) {
  std::vector<EqualSequences> runs;
  for (const AttendedImage& image : attention.images) {
    if (runs.empty() || runs.back().length != image.queries) runs.push_back({.sequences = 0, .length = image.queries});
    ++runs.back().sequences;
  }
  return runs;
}

// The images as sequences of our own kernels; nothing unless these take them. The order in which they add to the
// gradient of q is not fixed.
std::optional<Attention> OwnSequences(const PackedAttention& attention) {
  const PackedHeads& h = attention.h;
  const auto& [q, k, v] = attention.x;
  if (attention.parted || at::globalContext().deterministicAlgorithms()) return std::nullopt;
  for (const at::Tensor& x : {q, k, v})
    if (x.scalar_type() != at::kBFloat16 || x.stride(0) != q.stride(0) || x.stride(1) != 1) return std::nullopt;
  const auto elements = [](const at::Tensor& x) { return static_cast<const __nv_bfloat16*>(x.const_data_ptr()); };
  Attention sequences = {.q = elements(q),
                         .k = elements(k),
                         .v = elements(v),
                         .stride = q.stride(0),
                         .runs = RunsOf(attention),
                         .heads = h.heads,
                         .head_dim = h.head_dim,
                         .scale = h.scale()};
  return HopperTakes(sequences) ? std::optional<Attention>(std::move(sequences)) : std::nullopt;
}

// [N, heads * head_dim] as [images, rows of an image, heads, head_dim]
at::Tensor Sequences(const PackedAttention& attention, const at::Tensor& rows) {
  return rows.view({static_cast<int64_t>(attention.images.size()), attention.images[0].queries, attention.h.heads,
                    attention.h.head_dim});
}

// The images as a batch of sequences of one length, views of the projections; nothing unless cuDNN's kernel takes it.
std::optional<FlashOperands> CudnnBatch(const PackedAttention& attention) {
  if (attention.parted || !OneImageSize(attention.data) || RunsOf(attention).size() != 1) return std::nullopt;
  const FlashOperands batch = {Sequences(attention, attention.x.q), Sequences(attention, attention.x.k),
                               Sequences(attention, attention.x.v), attention.h.scale()};
  return TakesCudnn(batch) ? std::optional<FlashOperands>(batch) : std::nullopt;
}

// The keys of the images that this part has rows of: consecutive rows.
at::Tensor KeysOfPart(const PackedAttention& attention, const at::Tensor& all) {
  const int64_t first = attention.images.front().first_key;
  return all.narrow(0, first, attention.images.back().first_key + attention.images.back().keys - first);
}

// Where the flash kernel finds the rows of each image: i32 [n + 1] on the device, the first row of each, and behind
// them their number.
struct PackedSequences {
  at::Tensor queries, keys;
  int64_t longest_queries = 0, longest_keys = 0;

  explicit PackedSequences(const PackedAttention& attention) {
    std::vector<int32_t> first_query = {0}, first_key = {0};
    for (const AttendedImage& image : attention.images) {
      first_query.push_back(first_query.back() + static_cast<int32_t>(image.queries));
      first_key.push_back(first_key.back() + static_cast<int32_t>(image.keys));
      longest_queries = std::max(longest_queries, image.queries);
      longest_keys = std::max(longest_keys, image.keys);
    }
    queries = ToDevice(at::tensor(first_query, at::kInt), attention.x.q.device());
    keys = ToDevice(at::tensor(first_key, at::kInt), attention.x.q.device());
  }
};

// [N, heads * head_dim] <-> [N, heads, head_dim]
at::Tensor SplitHeads(const at::Tensor& x, const PackedHeads& h) { return x.unflatten(1, {h.heads, h.head_dim}); }
at::Tensor JoinHeads(const at::Tensor& x) { return x.reshape({x.size(0), -1}); }

// [images, rows of an image, heads, head_dim] -> [N, heads * head_dim]
at::Tensor JoinImages(const at::Tensor& x) { return x.reshape({x.size(0) * x.size(1), x.size(2) * x.size(3)}); }

Tensors OwnForward(const PackedAttention& attention, const Attention& own) {
  const at::Tensor& q = attention.x.q;
  const at::Tensor a = at::empty(q.sizes(), q.options());
  const at::Tensor lse = at::empty({own.heads, q.size(0)}, q.options().dtype(at::kFloat));
  C10_CUDA_CHECK(LaunchAttention(own, Elements<__nv_bfloat16>(a), Elements<float>(lse), CurrentStream()));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {a, lse};
}

// The gradients of q, k and v are columns of one tensor, as q, k and v are.
Tensors OwnBackward(const PackedAttention& attention, const Attention& own, const at::Tensor& da, const at::Tensor& a,
                    const at::Tensor& lse) {
  const auto in_vectors = [](const at::Tensor& x) {
    return LiesInVectors(x) ? x : at::empty_like(x, at::MemoryFormat::Contiguous).copy_(x);
  };
  const at::Tensor &q = attention.x.q, own_a = in_vectors(a), own_da = in_vectors(da), own_lse = lse.contiguous();
  const int64_t width = attention.h.width();
  TORCH_CHECK(da.sizes() == q.sizes() && a.sizes() == q.sizes() && lse.dim() == 2 && lse.size(0) == own.heads &&
                  lse.size(1) == q.size(0),
              "attention of ", q.sizes(), " has gradients ", da.sizes(), ", results ", a.sizes(), " and sums ",
              lse.sizes());
  const at::Tensor dqkv = at::empty({q.size(0), 3 * width}, q.options());
  const at::Tensor workspace = at::empty({AttentionWorkspace(own)}, q.options().dtype(at::kFloat));
  __nv_bfloat16* dq = Elements<__nv_bfloat16>(dqkv);
  const AttentionGradients gradients = {.a = Elements<__nv_bfloat16>(own_a),
                                        .lse = Elements<float>(own_lse),
                                        .da = Elements<__nv_bfloat16>(own_da),
                                        .dq = dq,
                                        .dk = dq + width,
                                        .dv = dq + 2 * width,
                                        .stride = 3 * width,
                                        .workspace = Elements<float>(workspace)};
  C10_CUDA_CHECK(LaunchAttentionGrad(own, gradients, CurrentStream()));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {dqkv};
}

Tensors CudnnBatchForward(const FlashOperands& batch) {
  const FlashResult result = CudnnForward(batch, /*causal=*/false);
  return {JoinImages(result.a), result.lse.transpose(0, 1).reshape({batch.q.size(2), -1})};
}

Tensors CudnnBatchBackward(const PackedAttention& attention, const FlashOperands& batch, const at::Tensor& da,
                           const at::Tensor& a, const at::Tensor& lse) {
  const int64_t images = batch.q.size(0), rows = batch.q.size(1), heads = batch.q.size(2);
  const FlashResult forward = {Sequences(attention, a.contiguous()), lse.view({heads, images, rows}).transpose(0, 1)};
  const FlashGradients d = CudnnBackward(batch, /*causal=*/false, Sequences(attention, da.contiguous()), forward);
  return {at::cat({JoinImages(d.dq), JoinImages(d.dk), JoinImages(d.dv)}, 1)};
}

Tensors FlashForward(const PackedAttention& attention) {
  const PackedSequences s(attention);
  const PackedHeads& h = attention.h;
  const auto result = at::_flash_attention_forward(
      SplitHeads(attention.x.q, h), SplitHeads(KeysOfPart(attention, attention.x.k), h),
      SplitHeads(KeysOfPart(attention, attention.x.v), h), s.queries, s.keys, s.longest_queries, s.longest_keys,
      /*dropout_p=*/0, /*is_causal=*/false, /*return_debug_mask=*/false, h.scale());
  return {JoinHeads(std::get<0>(result)), std::get<1>(result)};
}

Tensors FlashBackward(const PackedAttention& attention, const at::Tensor& da, const at::Tensor& a,
                      const at::Tensor& lse) {
  const PackedSequences s(attention);
  const PackedHeads& h = attention.h;
  const at::Tensor &q = attention.x.q, keys = KeysOfPart(attention, attention.x.k),
                   values = KeysOfPart(attention, attention.x.v);
  // The kernel takes the random state of dropout, but does not read it where there is none.
  const at::Tensor no_dropout = at::empty({2}, q.options().dtype(at::kUInt64));
  const auto [dq, dk, dv] =
      at::_flash_attention_backward(SplitHeads(da, h), SplitHeads(q, h), SplitHeads(keys, h), SplitHeads(values, h),
                                    SplitHeads(a, h), lse, s.queries, s.keys, s.longest_queries, s.longest_keys,
                                    /*dropout_p=*/0, /*is_causal=*/false, no_dropout, no_dropout, h.scale());
  if (!attention.parted) return {at::cat({JoinHeads(dq), JoinHeads(dk), JoinHeads(dv)}, 1)};
  const at::Tensor dkv = at::zeros({attention.x.k.size(0), 2 * h.width()}, q.options());
  KeysOfPart(attention, dkv).copy_(at::cat({JoinHeads(dk), JoinHeads(dv)}, 1));
  return {JoinHeads(dq), dkv};
}

}  // namespace

bool TakesPackedAttention(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && FlashTakesHeads(binding);
}
bool TakesPackedAttentionGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && FlashTakesHeads(binding);
}

Tensors FastPackedAttention(const ComputeContext& context) {
  const PackedAttention attention(context, 0, context.inputs.size() - 1);
  if (attention.x.q.size(0) == 0) return RunPackedAttention(context);
  if (const auto own = OwnSequences(attention)) return OwnForward(attention, *own);
  if (const auto batch = CudnnBatch(attention)) return CudnnBatchForward(*batch);
  return FlashForward(attention);
}

Tensors FastPackedAttentionGrad(const ComputeContext& context) {
  const PackedAttention attention(context, 1, context.inputs.size() - 1);
  if (attention.x.q.size(0) == 0) return RunPackedAttentionGrad(context);
  const size_t results = attention.parted ? 3 : 2;
  const at::Tensor &da = context.inputs[0], &a = context.inputs[results], &lse = context.inputs[results + 1];
  if (const auto own = OwnSequences(attention)) return OwnBackward(attention, *own, da, a, lse);
  if (const auto batch = CudnnBatch(attention)) return CudnnBatchBackward(attention, *batch, da, a, lse);
  return FlashBackward(attention, da, a, lse);
}

}  // namespace planwright::executor::ops
