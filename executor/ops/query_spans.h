// Which keys the queries of a rank may see in causal attention, with context parallelism and packed documents. All of
// it is known on the host.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// Consecutive queries [first, first + length) of this rank. The last of them sees the keys
// [keys_first, keys_first + keys) of the sequence, and each query one key less than the one after it.
struct QuerySpan {
  int64_t first = 0, length = 0, keys_first = 0, keys = 0;
};

// Queries that lie next to each other in the sequence, in spans of one document each. The keys of the spans lie next to
// each other, too; together they are [keys_first, keys_first + keys).
struct QueryChunk {
  int64_t first = 0, length = 0, keys_first = 0, keys = 0;
  std::vector<QuerySpan> spans;
};

// The chunks of a rank with `queries` positions: two with cp (zigzag), else one. `document_ends`: null where the
// sequence is one document.
std::vector<QueryChunk> QueryChunks(const ComputeContext& context, int64_t queries, const at::Tensor* document_ends);

// The queries [from, to) of a span, counted from its first.
QuerySpan PartOf(const QuerySpan& span, int64_t from, int64_t to);

}  // namespace planwright::executor::ops
