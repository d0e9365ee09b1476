// Kernels that move rows between tokens, slots and experts (permute_rows.cc, select_rows.cc and
// expert_rows_on_gpu.cc in executor/ops/fast). Rows are whole multiples of 16 bytes and start at multiples of 16 bytes.
// nvcc compiles the kernels, so nothing of LibTorch is here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

struct TokenRows {
  int64_t tokens = 0, top_k = 0, width = 0;  // width in elements, a multiple of 8
  const int* row_of_slot = nullptr;          // [tokens * top_k], all different
};

// rows [tokens * top_k, width]: rows[row_of_slot[t k + j]] = source[t], for each j. A row of the source is read once.
void LaunchSpreadRows(const __nv_bfloat16* source, TokenRows shape, __nv_bfloat16* rows, cudaStream_t stream);

// sums [tokens, width]: sums[t] = the sum over j of rows[row_of_slot[t k + j]], added in the order of j in fp32 and
// rounded once.
void LaunchSumRows(const __nv_bfloat16* rows, TokenRows shape, __nv_bfloat16* sums, cudaStream_t stream);

// The same for slots of which only some have a row, in fp32: sums[t] is not rounded. The others have -1 in row_of_slot.
void LaunchSumRowsHere(const __nv_bfloat16* rows, TokenRows shape, float* sums, cudaStream_t stream);

// to[i] = from[index[i]] for each row. No row of `from` is changed; both have rows of row_bytes.
void LaunchGatherRows(const void* from, const int64_t* index, int64_t rows, int64_t row_bytes, void* to,
                      cudaStream_t stream);
// to[index[i]] = from[i] for each row; index is a permutation.
void LaunchScatterRows(const void* from, const int64_t* index, int64_t rows, int64_t row_bytes, void* to,
                       cudaStream_t stream);

}  // namespace planwright::executor::ops
