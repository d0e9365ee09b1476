// Kernels of cross entropy over bf16 logits. executor/ops/cross_entropy.cc says what the results are. Each reads the
// logits once. Statistics, exponentials and sums are fp32, and sums have a fixed order.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// logits [positions, samples, columns], contiguous, aligned to 16 bytes. `columns` is a multiple of 8 and below 2^31.
struct Logits {
  const __nv_bfloat16* elements = nullptr;
  int64_t positions = 0, samples = 0;
  int columns = 0;
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

// m [positions, samples] = the largest logit of each row; NaN if one is NaN.
void LaunchLogitMaxima(const Logits& logits, float* m, cudaStream_t stream);

// sums [2, positions, samples]: sum of exp(logit - m); logit of the label - m, 0 if the label is in no column.
void LaunchLogitSums(const Logits& logits, const float* m, const TokenLabels& labels, float* sums, cudaStream_t stream);

// gradients, as the logits = mask (exp(logit - m) / sums - [the column is the label]). `sums` [positions, samples] is
// the first half of what LaunchLogitSums makes. `gradients` may be the logits themselves.
void LaunchLogitGradients(const Logits& logits, const float* m, const float* sums, const TokenLabels& labels,
                          const TokenValues<float>& mask, __nv_bfloat16* gradients, cudaStream_t stream);

}  // namespace planwright::executor::ops
