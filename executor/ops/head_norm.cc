// RMS norms of the heads of queries and keys (docs/model/decoder.md#norms-of-heads). The features of x are those of
// q_heads query heads, then of k_heads key heads, then of v_heads value heads, which pass. One weight [head_dim] for
// each of queries and keys that are there.
//
//   head_norm        x [...,f] | weights -> y [...,f], scale [...,q_heads + k_heads] = 1/rms of each head
//   head_norm_grad   dy, x, scale | weights | weights -> dx; adds to the gradients of the weights
//
// Statistics are fp32 (fp64 for fp64); y and dx have the dtype of x.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {
namespace {

// The heads that have one weight, and where they stand.
struct HeadGroup {
  int64_t first = 0, heads = 0;  // among all heads
  size_t weight = 0;
};

class HeadFeatures {
 public:
  explicit HeadFeatures(const ComputeContext& context)
      : head_dim_(context.instruction.integer("head_dim")), normed_(0) {
    for (const char* name : {"q_heads", "k_heads"}) {
      const int64_t heads = context.instruction.integer(name);
      if (heads > 0) groups_.push_back({normed_, heads, groups_.size()});
      normed_ += heads;
    }
    all_ = normed_ + context.instruction.integer("v_heads");
    TORCH_CHECK(context.parameters.size() == groups_.size(), "weights of heads: ", context.parameters.size());
  }

  const std::vector<HeadGroup>& groups() const { return groups_; }
  // [...,f] -> [rows, heads, head_dim] of the heads of a group, wide; and of those that pass, as they are.
  at::Tensor Of(const HeadGroup& group, const at::Tensor& x) const { return Wide(Heads(x, group.first, group.heads)); }
  at::Tensor Passing(const at::Tensor& x) const { return Heads(x, normed_, all_ - normed_); }
  // The reverse: parts in order, [rows, heads, head_dim] each, as [...,f] in the dtype of `like`.
  at::Tensor Joined(Tensors parts, const at::Tensor& like) const {
    for (at::Tensor& part : parts) part = Narrow(part, like);
    return at::cat(parts, 1).reshape(like.sizes());
  }

 private:
  at::Tensor Heads(const at::Tensor& x, int64_t first, int64_t heads) const {
    const at::Tensor rows = AsRows(x);
    TORCH_CHECK(rows.size(1) == all_ * head_dim_, "features of ", x.sizes(), " for ", all_, " heads of ", head_dim_);
    return rows.view({rows.size(0), all_, head_dim_}).narrow(1, first, heads);
  }

  int64_t head_dim_, normed_, all_ = 0;
  std::vector<HeadGroup> groups_;
};

}  // namespace

Tensors RunHeadNorm(const ComputeContext& context) {
  const at::Tensor& x = context.inputs[0];
  const HeadFeatures heads(context);
  Tensors parts, scales;
  for (const HeadGroup& group : heads.groups()) {
    const at::Tensor wide = heads.Of(group, x);
    const at::Tensor scale = wide.square().mean({-1}, true).add_(context.instruction.real("eps")).rsqrt_();
    parts.push_back((wide * scale).mul_(context.parameters[group.weight]));
    scales.push_back(scale.squeeze(-1));
  }
  parts.push_back(heads.Passing(x));
  const at::Tensor scale = at::cat(scales, 1);
  return {heads.Joined(std::move(parts), x), scale.view(WithWidth(x, scale.size(1)))};
}

Tensors RunHeadNormGrad(const ComputeContext& context) {
  const at::Tensor &dy = context.inputs[0], &x = context.inputs[1];
  const HeadFeatures heads(context);
  const at::Tensor scales = AsRows(context.inputs[2]).unsqueeze(-1);
  Tensors parts;
  for (const HeadGroup& group : heads.groups()) {
    const at::Tensor scale = scales.narrow(1, group.first, group.heads);
    const at::Tensor d = heads.Of(group, dy), unit = heads.Of(group, x) * scale;  // x / rms
    if (context.learns()) context.gradients[group.weight].add_((d * unit).sum(at::IntArrayRef({0, 1})));
    const at::Tensor dunit = d * context.parameters[group.weight];
    // As in rms_norm_grad: the part of the gradient along x is removed.
    parts.push_back((dunit - unit * (dunit * unit).mean({-1}, true)).mul_(scale));
  }
  parts.push_back(heads.Passing(dy));
  return {heads.Joined(std::move(parts), x)};
}

}  // namespace planwright::executor::ops
