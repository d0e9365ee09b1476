// Kernels of executor/ops/fast/routing_statistics.cc. nvcc compiles them, so nothing of LibTorch is here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int64_t kAuxLossParts = 256;  // room that LaunchSequenceAuxLoss needs

// aux [1] = factor * the sum over tokens and experts of probs [tokens,experts] times aux_counts [samples,experts].
// Token t is of sample t % samples. Sums are fp64, in an order that depends on shapes only. parts [kAuxLossParts] is
// room.
void LaunchSequenceAuxLoss(const float* probs, const int64_t* aux_counts, int64_t tokens, int64_t samples,
                           int64_t experts, double factor, double* parts, double* aux, cudaStream_t stream);

// Where the tokens of a rank are in the whole batch.
struct FingerprintOffsets {
  int64_t first_sample = 0, samples = 0;
  // Position q of the cp coordinate is q in the whole sequence, plus the first shift; from position `chunk` on, plus
  // the second one. This rank's positions begin at first_position of the coordinate's.
  int64_t first_position = 0, chunk = 0, shift = 0, later_shift = 0;
  uint64_t layer = 0;  // the layer's term of the key
};

// Adds the hash of each choice of ids [tokens, top_k] to sum [1], with wrap-around, so that the order does not matter.
void LaunchRoutingFingerprint(const int64_t* ids, int64_t tokens, int64_t top_k, FingerprintOffsets offsets,
                              int64_t* sum, cudaStream_t stream);

}  // namespace planwright::executor::ops
