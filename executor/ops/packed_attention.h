// What both forms of the vision encoder's attention share: their operands. vision_attention.cc describes the
// operations.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "executor/ops/handler.h"
#include "executor/ops/tensor_math.h"
#include "executor/ops/vision_images.h"

namespace planwright::executor::ops {

struct PackedHeads {
  int64_t heads, head_dim, class_tokens;
  explicit PackedHeads(const Instruction& op)
      : heads(op.integer("heads")), head_dim(op.integer("head_dim")), class_tokens(ClassTokensOf(op)) {}

  int64_t width() const { return heads * head_dim; }
  double scale() const { return 1 / std::sqrt(static_cast<double>(head_dim)); }

  // [L, heads * head_dim] as [heads, L, head_dim], wide.
  at::Tensor Split(const at::Tensor& x) const {
    return x.reshape({x.size(0), heads, head_dim}).transpose(0, 1).to(WideType(x));
  }
  // [heads, L, head_dim] into `into` [L, heads * head_dim].
  void Join(const at::Tensor& x, const at::Tensor& into) const {
    into.copy_(x.transpose(0, 1).reshape({x.size(1), width()}));
  }
};

// The rows of one image among the queries and among the keys.
struct AttendedImage {
  int64_t first_query, queries, first_key, keys;

  at::Tensor Queries(const at::Tensor& x) const { return x.narrow(0, first_query, queries); }
  at::Tensor Keys(const at::Tensor& x) const { return x.narrow(0, first_key, keys); }
};

// The operands of both forms, and their gradients, as views: q, k and v [rows, heads * head_dim]. With cp 1 they are
// columns of one tensor.
struct Projections {
  at::Tensor q, k, v;

  Projections(const PackedHeads& h, const at::Tensor& qkv)
      : q(qkv.narrow(1, 0, h.width())), k(qkv.narrow(1, h.width(), h.width())),
        v(qkv.narrow(1, 2 * h.width(), h.width())) {}
  Projections(const PackedHeads& h, at::Tensor queries, const at::Tensor& kv)
      : q(std::move(queries)), k(kv.narrow(1, 0, h.width())), v(kv.narrow(1, h.width(), h.width())) {}
};

// What both directions read: the projections begin at input `first`, and image_grid is input `grid`.
struct PackedAttention {
  PackedHeads h;
  const DataPlan& data;
  bool parted;  // by cp
  std::vector<AttendedImage> images;
  Projections x;

  PackedAttention(const ComputeContext& context, size_t first, size_t grid);

 private:
  const at::Tensor& Checked(const at::Tensor& projection, int64_t parts) const;
};

}  // namespace planwright::executor::ops
