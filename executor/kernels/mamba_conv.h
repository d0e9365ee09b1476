// Kernels of the convolution of a Mamba layer (docs/model/mamba.md#convolution): causal, depthwise, over four
// positions, with SiLU; and its backward.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// Limits of a grid of thread blocks.
constexpr int64_t kMostPositions = int64_t{1} << 22, kMostSamples = 65535;

// The convolution reads columns [first, first + channels) of rows [positions, samples, features].
struct ConvolutionShape {
  int64_t positions = 0;                          // at most kMostPositions
  int64_t samples = 0;                            // at most kMostSamples
  int64_t features = 0, first = 0, channels = 0;  // multiples of 4
  // Ends of packed documents, i64 [documents], ascending, the last one `positions`; on the device. Null: the sequence
  // is one document.
  const int64_t* document_ends = nullptr;
  int64_t documents = 0;
};

// out [positions, samples, channels] = silu(convolution of x with weight [channels, 4], plus bias [channels]). x and
// out are contiguous and aligned to 8 bytes, weight and bias contiguous at any address. Sums are fp32.
void LaunchConvolution(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                       __nv_bfloat16* out, const ConvolutionShape& shape, cudaStream_t stream);

// The number of rows of partial sums that LaunchConvolutionGradient writes.
int64_t ConvolutionPartials(const ConvolutionShape& shape);

// dx [positions, samples, channels] from dout, the gradient of the output, of the same shape; both are contiguous and
// aligned to 8 bytes, x and the parameters as above. `partials` [ConvolutionPartials, 5 channels] fp32 gets terms of
// the gradients of the weight (4 channels columns) and, behind them, of the bias: their sums over rows are those
// gradients. Null: they are not wanted.
void LaunchConvolutionGradient(const __nv_bfloat16* dout, const __nv_bfloat16* x, const __nv_bfloat16* weight,
                               const __nv_bfloat16* bias, __nv_bfloat16* dx, float* partials,
                               const ConvolutionShape& shape, cudaStream_t stream);

}  // namespace planwright::executor::ops
