#include "executor/ops/query_spans.h"

#include <algorithm>

#include "executor/ops/documents.h"

namespace planwright::executor::ops {
namespace {

// `first`: the chunk's first query on this rank; `position`: its number in the sequence.
QueryChunk MakeChunk(int64_t first, int64_t length, int64_t position, const std::vector<int64_t>& ends) {
  QueryChunk chunk{.first = first, .length = length};
  int64_t begin = 0;
  for (int64_t end : ends) {
    const int64_t from = std::max(begin, position), to = std::min(end, position + length);
    if (from < to) chunk.spans.push_back({first + from - position, to - from, begin, to - begin});
    begin = end;
  }
  if (chunk.spans.empty()) return chunk;  // a sequence of no positions
  chunk.keys_first = chunk.spans.front().keys_first;
  chunk.keys = position + length - chunk.keys_first;
  return chunk;
}

}  // namespace

std::vector<QueryChunk> QueryChunks(const ComputeContext& context, int64_t queries, const at::Tensor* document_ends) {
  const int64_t cp = context.instruction.over_cp() ? context.call.cp : 1;
  const std::vector<int64_t> ends =
      document_ends == nullptr ? std::vector<int64_t>{cp * queries} : DocumentEnds(*document_ends, cp * queries);
  if (cp == 1) return {MakeChunk(0, queries, 0, ends)};
  TORCH_CHECK(queries % 2 == 0, "a zigzag part of ", queries, " positions is not two chunks");
  const int64_t half = queries / 2, r = context.call.cp_rank;
  return {MakeChunk(0, half, r * half, ends), MakeChunk(half, half, (2 * cp - 1 - r) * half, ends)};
}

QuerySpan PartOf(const QuerySpan& span, int64_t from, int64_t to) {
  return {span.first + from, to - from, span.keys_first, span.keys - (span.length - to)};
}

}  // namespace planwright::executor::ops
