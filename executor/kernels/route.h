// Kernels of the routers (executor/ops/fast/route.cc). nvcc compiles them, so nothing of LibTorch is here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int64_t kMostExperts = 512, kMostChoices = 16;  // what the kernels below take

enum class RouteScores { kSigmoid, kSoftmax };  // of the experts of a token

// Token t is position * samples + sample, as everywhere.
struct RouteShape {
  int64_t positions = 0, samples = 0, experts = 0, top_k = 0;
  bool normalized = true;  // the weights of a token are divided by their sum, before `scale`
  float scale = 0;         // of the weights
  RouteScores scores = RouteScores::kSigmoid;
};

struct RouteOutputs {
  float* weights = nullptr;       // [T,k]
  int64_t* ids = nullptr;         // [T,k]
  int64_t* counts = nullptr;      // [experts], zero before
  float* probs = nullptr;         // [T,experts]
  int64_t* aux_counts = nullptr;  // [samples,experts], zero before
};

// From logits [T,experts] and bias [experts] (null: none) to the choice of experts, their weights, and the statistics
// of both choices, with and without the bias. Scores are fp32. Of equal scores the lower expert wins, and a score that
// is not a number is the largest. The sums of counts are integers, so their atomic additions may come in any order. At
// least one token; experts <= kMostExperts; top_k <= kMostChoices and <= experts.
void LaunchRoute(const float* logits, const float* bias, RouteShape shape, RouteOutputs out, cudaStream_t stream);

// From dweights [T,k], ids and logits to the gradient of the logits, as the sum of two bf16 terms: terms [T, 2 experts]
// has the rounded gradient in its first half, and what rounding left, rounded, in the second. The sum is off by at most
// 2^-16 of the gradient. aux_counts [samples,experts] (or null: no auxiliary loss) times aux_factor is the gradient of
// probs. Limits as above.
void LaunchRouteGrad(const float* dweights, const int64_t* ids, const float* logits, const int64_t* aux_counts,
                     float aux_factor, RouteShape shape, __nv_bfloat16* terms, cudaStream_t stream);

}  // namespace planwright::executor::ops
