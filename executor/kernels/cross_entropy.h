// Kernels of cross entropy over bf16 logits. executor/ops/cross_entropy.cc says what the results are. Each that reads
// the logits reads them once. Statistics, exponentials and sums are fp32, and sums have a fixed order.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// logits [positions, samples, columns], contiguous, aligned to 16 bytes. `columns` is a multiple of 8 and below 2^31.
// Columns from `ids` on are no logits: they count as -inf.
struct Logits {
  const __nv_bfloat16* elements = nullptr;
  int64_t positions = 0, samples = 0;
  int columns = 0, ids = 0;
};

// A value for each token, [samples, positions] with these strides in elements.
template <typename T>
struct TokenValues {
  const T* elements = nullptr;
  int64_t sample_stride = 0, position_stride = 0;
};

// Labels are ids of the whole vocabulary; column 0 of the logits is id `first_id`.
struct TokenLabels {
  TokenValues<int64_t> ids;
  int64_t first_id = 0;
};

// m [positions, samples] = the largest logit of each row; NaN if one is NaN. parts [4, positions, samples]: sum of
// exp(logit - m), 0 if all logits are -inf; m; logit of the label, 0 if the label is in no column; 1 if it is in one,
// else 0.
void LaunchLogitParts(const Logits& logits, const TokenLabels& labels, float* m, float* parts, cudaStream_t stream);

// sums [2, rows] of parts [4, rows], with an m of its own for each row: parts[0] exp(parts[1] - m); parts[2] - m, 0
// where parts[3] is 0.
void LaunchSumsOfParts(const float* parts, const float* m, int64_t rows, float* sums, cudaStream_t stream);

// gradients, as the logits = mask (exp(logit - m) / sums - [the column is the label]). `sums` [positions, samples] is
// the first half of what LaunchSumsOfParts makes. `gradients` may be the logits themselves.
void LaunchLogitGradients(const Logits& logits, const float* m, const float* sums, const TokenLabels& labels,
                          const TokenValues<float>& mask, __nv_bfloat16* gradients, cudaStream_t stream);

}  // namespace planwright::executor::ops
