// Sums over tokens that are only logged (executor/kernels/routing_statistics.h).
#include <algorithm>

#include "executor/kernels/routing_statistics.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kSumWarps = 8, kSumThreads = kSumWarps * kWarp;
constexpr int64_t kMostHashBlocks = 1024;

// A warp adds up every n-th token, a block its warps. A second kernel adds up the blocks.
__global__ void __launch_bounds__(kSumThreads)
    AuxLossPartsKernel(const float* probs, const int64_t* aux_counts, int64_t tokens, int64_t samples, int64_t experts,
                       double* parts) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  double sum = 0;
  for (int64_t token = static_cast<int64_t>(blockIdx.x) * kSumWarps + warp; token < tokens;
       token += static_cast<int64_t>(gridDim.x) * kSumWarps) {
    const float* mass = probs + token * experts;
    const int64_t* counts = aux_counts + token % samples * experts;
    for (int64_t e = lane; e < experts; e += kWarp)
      sum += static_cast<double>(mass[e]) * static_cast<double>(counts[e]);
  }
  sum = WarpSum(sum);
  __shared__ double of_warps[kSumWarps];
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int w = 1; w < kSumWarps; ++w) sum += of_warps[w];
  parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kWarp) AuxLossSumKernel(const double* parts, int count, double factor, double* aux) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kWarp) sum += parts[i];
  sum = WarpSum(sum);
  if (threadIdx.x == 0) aux[0] = sum * factor;
}

// The finaliser of splitmix64.
__device__ __forceinline__ uint64_t Mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

__global__ void __launch_bounds__(kSumThreads)
    FingerprintKernel(const int64_t* ids, int64_t choices, int64_t top_k, FingerprintOffsets offsets, int64_t* sum) {
  unsigned long long hash = 0;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kSumThreads + threadIdx.x; i < choices;
       i += static_cast<int64_t>(gridDim.x) * kSumThreads) {
    const int64_t token = i / top_k, own = offsets.first_position + token / offsets.samples;
    const auto position = static_cast<uint64_t>(own + (own < offsets.chunk ? offsets.shift : offsets.later_shift));
    const auto sample = static_cast<uint64_t>(offsets.first_sample + token % offsets.samples);
    // Large odd factors spread the four numbers over all 64 bits before they are mixed.
    hash += Mix(static_cast<uint64_t>(ids[i]) * 0xd6e8feb86659fd93 + sample * 0x9e3779b97f4a7c15 +
                position * 0xc2b2ae3d27d4eb4f + offsets.layer);
  }
  hash = WarpSum(hash);
  if (threadIdx.x % kWarp == 0) atomicAdd(reinterpret_cast<unsigned long long*>(sum), hash);
}

}  // namespace

void LaunchSequenceAuxLoss(const float* probs, const int64_t* aux_counts, int64_t tokens, int64_t samples,
                           int64_t experts, double factor, double* parts, double* aux, cudaStream_t stream) {
  const int64_t blocks = std::clamp<int64_t>((tokens + kSumWarps - 1) / kSumWarps, 1, kAuxLossParts);
  AuxLossPartsKernel<<<static_cast<unsigned>(blocks), kSumThreads, 0, stream>>>(probs, aux_counts, tokens, samples,
                                                                                experts, parts);
  AuxLossSumKernel<<<1, kWarp, 0, stream>>>(parts, static_cast<int>(blocks), factor, aux);
}

void LaunchRoutingFingerprint(const int64_t* ids, int64_t tokens, int64_t top_k, FingerprintOffsets offsets,
                              int64_t* sum, cudaStream_t stream) {
  const int64_t choices = tokens * top_k;
  if (choices == 0) return;
  const int64_t blocks = std::min((choices + kSumThreads - 1) / kSumThreads, kMostHashBlocks);
  FingerprintKernel<<<static_cast<unsigned>(blocks), kSumThreads, 0, stream>>>(ids, choices, top_k, offsets, sum);
}

}  // namespace planwright::executor::ops
