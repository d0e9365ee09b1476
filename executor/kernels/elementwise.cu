// Elementwise kernels (elementwise.h). A thread has two vectors of eight elements, a block's width apart, whose loads
// are all under way at once.
#include "executor/kernels/elementwise.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kThreads = 256, kEach = 2;

__device__ __forceinline__ float Relu(float x) { return x <= 0 ? 0 : x; }  // NaN stays NaN

struct SquaredRelu {
  __device__ __forceinline__ float operator()(const float (&x)[1]) const { return Relu(x[0]) * Relu(x[0]); }
};
struct SquaredReluGradient {
  __device__ __forceinline__ float operator()(const float (&x)[2]) const { return 2 * Relu(x[1]) * x[0]; }
};
struct Sum {
  __device__ __forceinline__ float operator()(const float (&x)[3]) const { return x[0] + x[1] + x[2]; }
};

template <int kInputs>
struct Inputs {
  const __nv_bfloat16* data[kInputs];
};

template <int kInputs, typename Function>
__global__ void __launch_bounds__(kThreads)
    ElementwiseKernel(Inputs<kInputs> inputs, __nv_bfloat16* out, int64_t count, Function function) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kThreads * kEach + threadIdx.x;
  uint4 raw[kEach][kInputs];
#pragma unroll
  for (int each = 0; each < kEach; ++each) {
    const int64_t vector = first + each * kThreads;
#pragma unroll
    for (int k = 0; k < kInputs; ++k) {
      raw[each][k] =
          (vector + 1) * kVector <= count ? reinterpret_cast<const uint4*>(inputs.data[k])[vector] : uint4{0, 0, 0, 0};
    }
  }
#pragma unroll
  for (int each = 0; each < kEach; ++each) {
    const int64_t vector = first + each * kThreads;
    if ((vector + 1) * kVector > count) break;
    float in[kInputs][kVector], results[kVector];
#pragma unroll
    for (int k = 0; k < kInputs; ++k) Widen(raw[each][k], in[k]);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      float values[kInputs];
#pragma unroll
      for (int k = 0; k < kInputs; ++k) values[k] = in[k][i];
      results[i] = function(values);
    }
    reinterpret_cast<uint4*>(out)[vector] = Narrow(results);
  }
  // Elements behind the last whole vector: fewer than eight, one for each of the first threads.
  const int64_t rest = count / kVector * kVector + threadIdx.x;
  if (blockIdx.x != 0 || rest >= count) return;
  float values[kInputs];
#pragma unroll
  for (int k = 0; k < kInputs; ++k) values[k] = __bfloat162float(inputs.data[k][rest]);
  out[rest] = __float2bfloat16_rn(function(values));
}

template <int kInputs, typename Function>
void Launch(const Inputs<kInputs>& inputs, __nv_bfloat16* out, int64_t count, Function function, cudaStream_t stream) {
  if (count == 0) return;
  constexpr int64_t kOfBlock = kThreads * kEach * kVector;
  const auto blocks = static_cast<unsigned>((count + kOfBlock - 1) / kOfBlock);
  ElementwiseKernel<<<blocks, kThreads, 0, stream>>>(inputs, out, count, function);
}

}  // namespace

void LaunchSquaredRelu(const __nv_bfloat16* x, __nv_bfloat16* y, int64_t count, cudaStream_t stream) {
  Launch(Inputs<1>{{x}}, y, count, SquaredRelu(), stream);
}

void LaunchSquaredReluGradient(const __nv_bfloat16* dy, const __nv_bfloat16* x, __nv_bfloat16* dx, int64_t count,
                               cudaStream_t stream) {
  Launch(Inputs<2>{{dy, x}}, dx, count, SquaredReluGradient(), stream);
}

void LaunchAddThree(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* c, __nv_bfloat16* sum,
                    int64_t count, cudaStream_t stream) {
  Launch(Inputs<3>{{a, b, c}}, sum, count, Sum(), stream);
}

}  // namespace planwright::executor::ops
