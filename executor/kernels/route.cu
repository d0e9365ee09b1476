// The routers behind the product with the gate (executor/kernels/route.h). One warp works on a token: lane i has the
// experts i, i + 32, i + 64, ...
#include <cmath>
#include <type_traits>

#include "executor/kernels/route.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr float kTiny = 1e-20f;  // keeps the divisor of the weights from zero

// A block works on positions of one sample, so that it counts in shared memory and adds its counts once. More tokens in
// a block mean fewer atomic additions to few addresses; fewer tokens mean more blocks.
constexpr int kRouteWarps = 16, kTokensOfWarp = 4, kRouteTokens = kRouteWarps * kTokensOfWarp;
constexpr int kGradWarps = 8;

// The scores of the experts of one token, from its logits. To the last bits of fp32: close scores must not tie.
template <RouteScores kScores>
struct TokenScores {
  float largest = 0, sum = 1;  // of the softmax

  // logits: those of this lane; behind the last expert they are -infinity.
  template <int kEach>
  __device__ __forceinline__ explicit TokenScores(const float (&logits)[kEach]) {
    if constexpr (kScores == RouteScores::kSoftmax) {
      largest = logits[0];
#pragma unroll
      for (int i = 1; i < kEach; ++i) largest = fmaxf(largest, logits[i]);
#pragma unroll
      for (int apart = kWarp / 2; apart > 0; apart /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, apart));
      sum = 0;
#pragma unroll
      for (int i = 0; i < kEach; ++i) sum += expf(logits[i] - largest);
      sum = WarpSum(sum);
    }
  }
  __device__ __forceinline__ float operator()(float logit) const {
    return kScores == RouteScores::kSoftmax ? expf(logit - largest) / sum : 1.0f / (1.0f + expf(-logit));
  }
};

template <int kEach>
__device__ __forceinline__ void LoadLogits(const float* logits, int64_t token, int lane, int experts,
                                           float (&to)[kEach]) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + kWarp * i;
    to[i] = expert < experts ? logits[token * experts + expert] : -INFINITY;
  }
}

// Integers in the order of the floats, all of them above 0. Not-a-number comes last.
__device__ __forceinline__ unsigned Ordered(float x) {
  if (isnan(x)) return 0xffffffffu;
  const unsigned bits = __float_as_uint(x);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The expert with the largest key, the lowest one of several; its key becomes 0. All lanes get it.
template <int kEach>
__device__ __forceinline__ int TakeBest(unsigned (&keys)[kEach], int lane) {
  unsigned best = keys[0];
  int index = 0;
#pragma unroll
  for (int i = 1; i < kEach; ++i) {
    if (keys[i] > best) best = keys[i], index = i;
  }
  const unsigned largest = __reduce_max_sync(kAllLanes, best);
  const unsigned candidate = best == largest ? static_cast<unsigned>(lane + kWarp * index) : 0xffffffffu;
  const int expert = static_cast<int>(__reduce_min_sync(kAllLanes, candidate));
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (expert == lane + kWarp * i) keys[i] = 0;
  }
  return expert;
}

template <RouteScores kScores, int kEach>
__device__ void RouteToken(const float* logits, const float (&bias)[kEach], const RouteShape& shape,
                           const RouteOutputs& out, int64_t token, int* chosen, int* unbiased) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, experts = static_cast<int>(shape.experts),
            top_k = static_cast<int>(shape.top_k);
  float scores[kEach], sum = 0;
  unsigned keys[kEach], biased[kEach];
  LoadLogits(logits, token, lane, experts, scores);
  const TokenScores<kScores> score_of(scores);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + kWarp * i;
    const bool real = expert < experts;
    scores[i] = real ? score_of(scores[i]) : 0.0f;
    sum += scores[i];
    keys[i] = real ? Ordered(scores[i]) : 0;
    biased[i] = real ? Ordered(scores[i] + bias[i]) : 0;
  }
  sum = WarpSum(sum);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + kWarp * i;
    if (expert < experts) out.probs[token * experts + expert] = scores[i] / sum;
  }

  int id = 0;  // lane j keeps choice j
  float score = 0;
  for (int j = 0; j < top_k; ++j) {
    const int expert = TakeBest(biased, lane);
    float own = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (expert == lane + kWarp * i) own = scores[i];
    }
    own = __shfl_sync(kAllLanes, own, expert % kWarp);
    if (lane == j) id = expert, score = own;
  }
  const float total = WarpSum(score) + kTiny;
  if (lane < top_k) {
    const float weight = shape.normalized ? score / total : score;
    out.weights[token * top_k + lane] = weight * shape.scale;
    out.ids[token * top_k + lane] = id;
    atomicAdd(chosen + id, 1);
  }

  int plain = 0;
  for (int j = 0; j < top_k; ++j) {
    const int expert = TakeBest(keys, lane);
    if (lane == j) plain = expert;
  }
  if (lane < top_k) atomicAdd(unbiased + plain, 1);
}

__device__ void AddCount(int64_t* sum, int count) {
  if (count != 0) atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(count));
}

template <RouteScores kScores, int kEach>
__global__ void __launch_bounds__(kRouteWarps* kWarp)
    RouteKernel(const float* logits, const float* bias, RouteShape shape, RouteOutputs out) {
  __shared__ int chosen[kMostExperts], unbiased[kMostExperts];
  const int threads = kRouteWarps * kWarp, thread = static_cast<int>(threadIdx.x), warp = thread / kWarp,
            lane = thread % kWarp, experts = static_cast<int>(shape.experts);
  const int64_t blocks_of_sample = gridDim.x / shape.samples, sample = blockIdx.x / blocks_of_sample;
  const int64_t first = (blockIdx.x % blocks_of_sample) * kRouteTokens;
  for (int i = thread; i < experts; i += threads) chosen[i] = 0, unbiased[i] = 0;
  __syncthreads();

  float own_bias[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i)
    own_bias[i] = bias != nullptr && lane + kWarp * i < experts ? bias[lane + kWarp * i] : 0.0f;
  for (int i = 0; i < kTokensOfWarp; ++i) {
    const int64_t position = first + i * kRouteWarps + warp;
    if (position < shape.positions)
      RouteToken<kScores>(logits, own_bias, shape, out, position * shape.samples + sample, chosen, unbiased);
  }

  __syncthreads();
  for (int i = thread; i < experts; i += threads) {
    AddCount(out.counts + i, chosen[i]);
    AddCount(out.aux_counts + sample * experts + i, unbiased[i]);
  }
}

template <RouteScores kScores, int kEach>
__global__ void __launch_bounds__(kGradWarps* kWarp)
    RouteGradKernel(const float* dweights, const int64_t* ids, const float* logits, const int64_t* aux_counts,
                    float aux_factor, RouteShape shape, __nv_bfloat16* terms) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp, experts = static_cast<int>(shape.experts),
            top_k = static_cast<int>(shape.top_k);
  const int64_t token = static_cast<int64_t>(blockIdx.x) * kGradWarps + threadIdx.x / kWarp;
  if (token >= shape.positions * shape.samples) return;

  float scores[kEach], dscores[kEach], sum = 0, inner = 0;
  LoadLogits(logits, token, lane, experts, scores);
  const TokenScores<kScores> score_of(scores);

  // The choices: lane j has the gradient of the score of choice j.
  int id = 0;
  float dchosen = 0, chosen = 0;
  if (lane < top_k) {
    id = static_cast<int>(ids[token * top_k + lane]);
    dchosen = dweights[token * top_k + lane] * shape.scale;
    chosen = score_of(logits[token * experts + id]);
  }
  if (shape.normalized) {
    const float sum = WarpSum(chosen) + kTiny, inner = WarpSum(dchosen * chosen);
    // Of one choice the quotient is 1. The difference would be a rounding, which Adam makes a step as large as any.
    dchosen = top_k > 1 ? (dchosen - inner / sum) / sum : dchosen * (kTiny / sum) / sum;
  }

  // All experts: the auxiliary loss acts on scores / (their sum).
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + kWarp * i;
    const bool real = expert < experts;
    scores[i] = real ? score_of(scores[i]) : 0.0f;
    dscores[i] = 0;
    if (aux_counts != nullptr && real)
      dscores[i] = static_cast<float>(aux_counts[token % shape.samples * experts + expert]) * aux_factor;
    sum += scores[i];
    inner += dscores[i] * scores[i];
  }
  if (aux_counts != nullptr) {
    sum = WarpSum(sum);
    const float mean = WarpSum(inner) / sum;
#pragma unroll
    for (int i = 0; i < kEach; ++i) dscores[i] = (dscores[i] - mean) / sum;
  }
  for (int j = 0; j < top_k; ++j) {
    const int expert = __shfl_sync(kAllLanes, id, j);
    const float dscore = __shfl_sync(kAllLanes, dchosen, j);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (expert == lane + kWarp * i) dscores[i] += dscore;
    }
  }

  float along = 0;  // of a softmax: scores that rise together change nothing
  if constexpr (kScores == RouteScores::kSoftmax) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) along += dscores[i] * scores[i];
    along = WarpSum(along);
  }
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int expert = lane + kWarp * i;
    if (expert >= experts) continue;
    const float dlogit = kScores == RouteScores::kSoftmax ? (dscores[i] - along) * scores[i]
                                                          : dscores[i] * scores[i] * (1.0f - scores[i]);
    const __nv_bfloat16 rounded = __float2bfloat16_rn(dlogit);
    __nv_bfloat16* row = terms + token * 2 * experts;
    row[expert] = rounded;
    row[experts + expert] = __float2bfloat16_rn(dlogit - __bfloat162float(rounded));
  }
}

template <RouteScores kScores, typename Launch>
void WithExpertsOfLane(int64_t experts, Launch launch) {
  const std::integral_constant<RouteScores, kScores> scores;
  if (experts <= kWarp) return launch(scores, std::integral_constant<int, 1>());
  if (experts <= 2 * kWarp) return launch(scores, std::integral_constant<int, 2>());
  if (experts <= 4 * kWarp) return launch(scores, std::integral_constant<int, 4>());
  if (experts <= 8 * kWarp) return launch(scores, std::integral_constant<int, 8>());
  launch(scores, std::integral_constant<int, 16>());
}

// Calls launch with the kind of scores and the number of experts of a lane: 1, 2, 4, 8 or 16.
template <typename Launch>
void WithKernelOf(const RouteShape& shape, Launch launch) {
  if (shape.scores == RouteScores::kSigmoid) return WithExpertsOfLane<RouteScores::kSigmoid>(shape.experts, launch);
  WithExpertsOfLane<RouteScores::kSoftmax>(shape.experts, launch);
}
static_assert(kMostExperts == 16 * kWarp && kMostChoices <= kWarp);

}  // namespace

void LaunchRoute(const float* logits, const float* bias, RouteShape shape, RouteOutputs out, cudaStream_t stream) {
  const int64_t blocks = (shape.positions + kRouteTokens - 1) / kRouteTokens * shape.samples;
  WithKernelOf(shape, [&](auto scores, auto each) {
    RouteKernel<decltype(scores)::value, decltype(each)::value>
        <<<static_cast<unsigned>(blocks), kRouteWarps * kWarp, 0, stream>>>(logits, bias, shape, out);
  });
}

void LaunchRouteGrad(const float* dweights, const int64_t* ids, const float* logits, const int64_t* aux_counts,
                     float aux_factor, RouteShape shape, __nv_bfloat16* terms, cudaStream_t stream) {
  const int64_t blocks = (shape.positions * shape.samples + kGradWarps - 1) / kGradWarps;
  WithKernelOf(shape, [&](auto scores, auto each) {
    RouteGradKernel<decltype(scores)::value, decltype(each)::value>
        <<<static_cast<unsigned>(blocks), kGradWarps * kWarp, 0, stream>>>(dweights, ids, logits, aux_counts,
                                                                           aux_factor, shape, terms);
  });
}

}  // namespace planwright::executor::ops
