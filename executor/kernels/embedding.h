// The gradient of an embedding table (executor/ops/embedding.cc).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// The table's row of each token, ascending, and the token's number. Rows from `table_rows` on are not in the table.
struct SortedTokens {
  const int64_t *rows = nullptr, *numbers = nullptr;
  int64_t tokens = 0, table_rows = 0;
};

// gradient [table_rows, width] += the rows of de [tokens, width] at their tokens' rows. The rows of one token are added
// in the order in which they are sorted, in fp32. Both matrices are contiguous and aligned to 16 bytes, and width is a
// multiple of 8.
void LaunchAddTokenRows(const SortedTokens& sorted, const __nv_bfloat16* de, int64_t width, float* gradient,
                        cudaStream_t stream);

}  // namespace planwright::executor::ops
