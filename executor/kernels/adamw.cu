// The end of a step on a flat shard: every kernel streams through memory in accesses of 16 bytes.
#include "executor/kernels/adamw.h"

namespace planwright::executor {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr unsigned kAllLanes = 0xffffffff;

template <typename T, int kSize>
struct alignas(kSize * sizeof(T)) Pack {
  static constexpr int kWidth = kSize;
  T x[kSize];
};
// What a thread reads at once: 16 bytes.
template <typename T>
using Vector = Pack<T, 16 / sizeof(T)>;

// `aligned`: in one access. The same for all threads.
template <typename P, typename T>
__device__ P Load(const T* from, bool aligned) {
  if (aligned) return *reinterpret_cast<const P*>(from);
  P pack;
#pragma unroll
  for (int k = 0; k < P::kWidth; ++k) pack.x[k] = from[k];
  return pack;
}
template <typename P, typename T>
__device__ void Store(const P& pack, T* to, bool aligned) {
  if (aligned) {
    *reinterpret_cast<P*>(to) = pack;
    return;
  }
#pragma unroll
  for (int k = 0; k < P::kWidth; ++k) to[k] = pack.x[k];
}
template <typename P, typename T>
__device__ bool IsAligned(const T* at) {
  return reinterpret_cast<uintptr_t>(at) % sizeof(P) == 0;
}

__device__ int64_t ThreadOfGrid() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }

unsigned BlocksFor(int64_t elements, int64_t per_block) {
  return static_cast<unsigned>((elements + per_block - 1) / per_block);
}

// By what gradients of a sum over `count` loss tokens are multiplied.
__device__ double ScaleOf(int64_t count) { return 1.0 / static_cast<double>(count > 1 ? count : 1); }

// The sum of a number of each thread of the block, in a fixed order. Thread 0 has it.
__device__ double SumOverBlock(double value) {
  __shared__ double of_warps[kWarps];
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  if (lane == 0) of_warps[warp] = value;
  __syncthreads();
  value = 0;
#pragma unroll
  for (double of_warp : of_warps) value += of_warp;
  return value;
}

// A square of an fp32 number, or a bf16 one, is exact in fp64.
template <typename T>
__global__ void __launch_bounds__(kThreads) SquaresKernel(const T* x, int64_t elements, double* parts) {
  constexpr int kAtOnce = 4, kWidth = Vector<T>::kWidth;
  const Vector<T>* all = reinterpret_cast<const Vector<T>*>(x);
  const int64_t vectors = elements / kWidth, stride = int64_t{gridDim.x} * kThreads;
  double sums[kAtOnce] = {};
  for (int64_t first = ThreadOfGrid(); first < vectors; first += stride * kAtOnce) {
    Vector<T> mine[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i * stride < vectors) mine[i] = all[first + i * stride];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
#pragma unroll
      for (T one : mine[i].x) sums[i] += static_cast<double>(one) * static_cast<double>(one);
    }
  }
  const int64_t rest = vectors * kWidth + ThreadOfGrid();  // less than a vector
  if (rest < elements) sums[0] += static_cast<double>(x[rest]) * static_cast<double>(x[rest]);
  const double sum = SumOverBlock((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads) AddPartsKernel(const double* parts, const int64_t* count, double* sum) {
  double mine = 0;
  for (int part = static_cast<int>(threadIdx.x); part < kSquareSumParts; part += kThreads) mine += parts[part];
  mine = SumOverBlock(mine);
  if (threadIdx.x != 0) return;
  const double scale = count == nullptr ? 1 : ScaleOf(*count);
  *sum += mine * (scale * scale);
}

// The factors that all elements share, from numbers of the device: formed once, in fp64, as powers are slow.
template <typename T>
struct Factors {
  T gradient;     // clip coefficient and scale of the gradient
  T root_factor;  // 1 / sqrt(1 - beta2^t)
  T skipped;      // not 0: the step is not applied
  T unused;
};

// The factors of elements that have one rate, and all decay or all do not.
template <typename T>
struct RateFactors {
  T rate;  // lr / (1 - beta1^t)
  T kept;  // what remains of a weight: 1 - lr wd, or 1 where it does not decay
};
// Two of them for each rate follow Factors.
static_assert(sizeof(Factors<float>) + 2 * sizeof(RateFactors<float>) == AdamWFactors(1) * sizeof(float));

// Of each rate what the host knows.
struct HostRates {
  double learning_rate[kMostAdamWRates], kept[kMostAdamWRates];
  int count;
};

constexpr int kRateThreads = 96;
static_assert(kRateThreads >= kMostAdamWRates);

template <typename T>
__global__ void FactorsKernel(AdamWSettings settings, const __grid_constant__ HostRates rates, AdamWGate gate,
                              Factors<T>* factors) {
  const double steps = static_cast<double>(*gate.applied_steps);
  const int row = static_cast<int>(threadIdx.x);
  if (row == 0) {
    factors->gradient = static_cast<T>(*gate.clip * ScaleOf(*gate.loss_tokens));
    factors->root_factor = static_cast<T>(1 / sqrt(1 - pow(settings.beta2, steps)));
    factors->skipped = static_cast<T>(*gate.skipped);
  }
  if (row >= rates.count) return;
  RateFactors<T>* mine = reinterpret_cast<RateFactors<T>*>(factors + 1) + 2 * row;
  const T rate = static_cast<T>(rates.learning_rate[row] / (1 - pow(settings.beta1, steps)));
  mine[0] = {rate, T(1)};
  mine[1] = {rate, static_cast<T>(rates.kept[row])};
}

// Factors that the host knows.
template <typename T>
struct Constants {
  T beta1, rest1, beta2, rest2, eps;  // rest: 1 - beta
};

// The formula of docs/training/step.md#adamw, for one element.
template <typename T>
__device__ void Update(const Constants<T>& constants, const Factors<T>& factors, const RateFactors<T>& rate, T gradient,
                       T& weight, T& m, T& v) {
  gradient *= factors.gradient;
  weight *= rate.kept;
  m = constants.beta1 * m + constants.rest1 * gradient;
  v = constants.beta2 * v + constants.rest2 * gradient * gradient;
  weight -= rate.rate * (m / (sqrt(v) * factors.root_factor + constants.eps));
}

// Finds what elements are stepped with, for the elements of a block. All threads of a block ask for the same elements.
template <typename T>
class Rates {
 public:
  __device__ Rates(const AdamWRanges& ranges, const Factors<T>* factors, int64_t first, int64_t end)
      : ranges_(ranges.ranges), rates_(reinterpret_cast<const RateFactors<T>*>(factors + 1)) {
    // The first range that ends behind `first`.
    int low = 0, high = ranges.count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ranges_[2 * middle] > first) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    range_ = low;
    all_same_ = ranges_[2 * low] >= end;
    first_ = rates_[ranges_[2 * low + 1]];
  }
  __device__ RateFactors<T> Of(int64_t element) const {
    if (all_same_) return first_;
    int range = range_;
    while (ranges_[2 * range] <= element) ++range;
    return rates_[ranges_[2 * range + 1]];
  }

 private:
  const int64_t* ranges_;
  const RateFactors<T>* rates_;
  int range_;
  bool all_same_;
  RateFactors<T> first_;
};

constexpr int kSteppedAtOnce = 2;  // vectors of a thread

template <typename T, bool kRounds>
__global__ void __launch_bounds__(kThreads)
    AdamWKernel(Constants<T> constants, const Factors<T>* all_factors, AdamWRanges ranges, AdamWShard<T> shard) {
  using V = Vector<T>;
  constexpr int kWidth = V::kWidth;
  using Rounded = Pack<__nv_bfloat16, kWidth>;
  constexpr int64_t kPerBlock = int64_t{kThreads} * kSteppedAtOnce * kWidth;
  const V* gradients = reinterpret_cast<const V*>(shard.gradient);
  V *ms = reinterpret_cast<V*>(shard.exp_avg), *vs = reinterpret_cast<V*>(shard.exp_avg_sq);
  const bool aligned = IsAligned<V>(shard.master), aligned_rounded = IsAligned<Rounded>(shard.parameters);
  const int64_t vectors = shard.elements / kWidth,
                first = int64_t{blockIdx.x} * kThreads * kSteppedAtOnce + threadIdx.x;
  V weight[kSteppedAtOnce] = {}, gradient[kSteppedAtOnce] = {}, m[kSteppedAtOnce] = {}, v[kSteppedAtOnce] = {};
#pragma unroll
  for (int i = 0; i < kSteppedAtOnce; ++i) {
    const int64_t index = first + i * kThreads;
    if (index >= vectors) break;
    weight[i] = Load<V>(shard.master + index * kWidth, aligned);
    gradient[i] = gradients[index], m[i] = ms[index], v[i] = vs[index];
  }
  const Factors<T> factors = *all_factors;
  if (factors.skipped != T(0)) return;
  const int64_t begin = int64_t{blockIdx.x} * kPerBlock,
                end = begin + kPerBlock < shard.elements ? begin + kPerBlock : shard.elements;
  const Rates<T> rates(ranges, all_factors, begin, end);
#pragma unroll
  for (int i = 0; i < kSteppedAtOnce; ++i) {
    const int64_t index = first + i * kThreads;
    if (index >= vectors) break;
#pragma unroll
    for (int k = 0; k < kWidth; ++k)
      Update(constants, factors, rates.Of(index * kWidth + k), gradient[i].x[k], weight[i].x[k], m[i].x[k], v[i].x[k]);
    Store(weight[i], shard.master + index * kWidth, aligned);
    ms[index] = m[i], vs[index] = v[i];
    if constexpr (kRounds) {
      Rounded rounded;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) rounded.x[k] = __float2bfloat16_rn(static_cast<float>(weight[i].x[k]));
      Store(rounded, shard.parameters + index * kWidth, aligned_rounded);
    }
  }
  const int64_t rest = vectors * kWidth + ThreadOfGrid();  // less than a vector
  if (rest >= shard.elements) return;
  const RateFactors<T> rate = Rates<T>(ranges, all_factors, rest, rest + 1).Of(rest);
  T left = shard.master[rest];
  Update(constants, factors, rate, shard.gradient[rest], left, shard.exp_avg[rest], shard.exp_avg_sq[rest]);
  shard.master[rest] = left;
  if constexpr (kRounds) shard.parameters[rest] = __float2bfloat16_rn(static_cast<float>(left));
}

}  // namespace

template <typename T>
void LaunchAddSquares(const T* x, int64_t elements, const int64_t* count, double* parts, double* sum,
                      cudaStream_t stream) {
  SquaresKernel<<<kSquareSumParts, kThreads, 0, stream>>>(x, elements, parts);
  AddPartsKernel<<<1, kThreads, 0, stream>>>(parts, count, sum);
}

template <typename T>
void LaunchAdamW(const AdamWSettings& settings, const AdamWRates& rates, const AdamWGate& gate,
                 const AdamWRanges& ranges, const AdamWShard<T>& shard, T* factors, cudaStream_t stream) {
  if (shard.elements == 0) return;
  HostRates on_host = {};
  on_host.count = rates.count;
  for (int i = 0; i < rates.count; ++i) {
    on_host.learning_rate[i] = rates.learning_rate[i];
    on_host.kept[i] = 1 - rates.learning_rate[i] * rates.weight_decay[i];
  }
  Factors<T>* on_device = reinterpret_cast<Factors<T>*>(factors);
  FactorsKernel<<<1, kRateThreads, 0, stream>>>(settings, on_host, gate, on_device);
  const auto narrow = [](double x) { return static_cast<T>(x); };
  const Constants<T> constants = {narrow(settings.beta1), narrow(1 - settings.beta1), narrow(settings.beta2),
                                  narrow(1 - settings.beta2), narrow(settings.eps)};
  const unsigned blocks = BlocksFor(shard.elements, int64_t{kThreads} * kSteppedAtOnce * Vector<T>::kWidth);
  if (shard.parameters != nullptr) {
    AdamWKernel<T, true><<<blocks, kThreads, 0, stream>>>(constants, on_device, ranges, shard);
  } else {
    AdamWKernel<T, false><<<blocks, kThreads, 0, stream>>>(constants, on_device, ranges, shard);
  }
}

template void LaunchAddSquares(const __nv_bfloat16*, int64_t, const int64_t*, double*, double*, cudaStream_t);
template void LaunchAddSquares(const float*, int64_t, const int64_t*, double*, double*, cudaStream_t);
template void LaunchAddSquares(const double*, int64_t, const int64_t*, double*, double*, cudaStream_t);
template void LaunchAdamW(const AdamWSettings&, const AdamWRates&, const AdamWGate&, const AdamWRanges&,
                          const AdamWShard<float>&, float*, cudaStream_t);
template void LaunchAdamW(const AdamWSettings&, const AdamWRates&, const AdamWGate&, const AdamWRanges&,
                          const AdamWShard<double>&, double*, cudaStream_t);

}  // namespace planwright::executor
