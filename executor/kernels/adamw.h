// Kernels of the end of a step: norm and AdamW over a flat shard (executor/optimizer/optimizer.h says what they
// compute). Gradients are not scaled in memory, but where they are read. Each kernel reads a tensor once. T is float or
// double. Tensors of T are aligned to 16 bytes, except masters. The number of elements is not bounded by 32 bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor {

// The parts that a sum of squares is formed from. Their number is the same on every GPU, so the sum is, too.
inline constexpr int kSquareSumParts = 2112;

// sum [1] += the squares of x [elements] / max(count, 1), in fp64. `count` is one number on the device; null: 1.
// `parts` [kSquareSumParts] is scratch. T may also be bf16.
template <typename T>
void LaunchAddSquares(const T* x, int64_t elements, const int64_t* count, double* parts, double* sum,
                      cudaStream_t stream);

struct AdamWSettings {
  double beta1 = 0, beta2 = 0, eps = 0;
};

// The rates of a step: those of the schedule, and then those of each part of the plan.
inline constexpr int kMostAdamWRates = 65;
struct AdamWRates {
  double learning_rate[kMostAdamWRates] = {}, weight_decay[kMostAdamWRates] = {};
  int count = 0;
};

// What the device alone knows: how many steps were applied (this one included), by what gradients are multiplied (clip
// / max(loss_tokens, 1), in fp64), and whether this step is skipped (then not 0).
struct AdamWGate {
  const int64_t *applied_steps = nullptr, *loss_tokens = nullptr;
  const double* clip = nullptr;
  const float* skipped = nullptr;
};

// All [elements]. `parameters` takes the new weights in bf16; null: the masters are the parameters. `master` and
// `parameters` may have any alignment: they may be parts of a bucket that is cut anywhere.
template <typename T>
struct AdamWShard {
  T* master = nullptr;
  const T* gradient = nullptr;
  T *exp_avg = nullptr, *exp_avg_sq = nullptr;
  __nv_bfloat16* parameters = nullptr;
  int64_t elements = 0;
};

// `ranges` [count, 2] on the device: the element behind each range, in order, and what its elements are stepped with: 2
// times the index of their rates, and 1 more if they decay. The last range ends where the shard does.
struct AdamWRanges {
  const int64_t* ranges = nullptr;
  int count = 0;
};

// Factors that LaunchAdamW keeps on the device while it runs, of so many rates.
constexpr int AdamWFactors(int rates) { return 4 * (rates + 1); }

// One step of AdamW. `factors` [AdamWFactors(rates.count)] is scratch. A skipped step writes nothing.
template <typename T>
void LaunchAdamW(const AdamWSettings& settings, const AdamWRates& rates, const AdamWGate& gate,
                 const AdamWRanges& ranges, const AdamWShard<T>& shard, T* factors, cudaStream_t stream);

}  // namespace planwright::executor
