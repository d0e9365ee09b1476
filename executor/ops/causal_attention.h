// What both forms of causal attention share: their operands, and gradients as outputs. causal_attention.cc describes
// the operations.
#pragma once

#include <vector>

#include "executor/ops/handler.h"
#include "executor/ops/query_spans.h"

namespace planwright::executor::ops {

// Whose keys and values the inputs have: those of this rank's queries, or those of all ranks' beside them.
enum class AttendedKeys { kOwn, kAll };

// What the operations read.
struct AttentionInputs {
  bool apart;  // q is an input of its own
  int64_t q_heads, head_dim;
  int64_t all_kv_heads;         // that the inputs have
  int64_t kv_heads, first_key;  // those of them that the queries read
  int64_t group;                // so many query heads share one key head
  at::Tensor q, k, v;           // [positions,B,heads * head_dim], as they came: k and v are parts of an input
  std::vector<QueryChunk> chunks;
  double scale;

  // `index`: of q (or qkv) among the inputs. `between`: how many inputs follow these before document_ends.
  AttentionInputs(const ComputeContext& context, AttendedKeys whose, size_t index, size_t between);

  int64_t samples() const { return q.size(1); }
};

// The gradients of q, k and v as outputs: one tensor, or two where q is an input of its own.
Tensors AttentionGradients(const AttentionInputs& in, const at::Tensor& dq, const at::Tensor& dk, const at::Tensor& dv);

}  // namespace planwright::executor::ops
