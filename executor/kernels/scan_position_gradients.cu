// The gradient of the Mamba-2 scan, part three: dt, and what the parameters of a head get from a chunk (mamba_scan.h).
#include "executor/kernels/scan_block.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kThreads = 256, kHeadsEach = kThreads / 32;

__device__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// A warp has a chunk of one sample and one head, a lane some positions in a row.
template <int kChunk>
__global__ void __launch_bounds__(kThreads)
    PositionGradientsKernel(ScanShape z, ScanInputs in, ScanFactors f, ScanGradients out) {
  constexpr int kEach = kChunk / 32;
  const int64_t warp = static_cast<int64_t>(blockIdx.x) * kHeadsEach + WarpIndex();  // among all chunks' heads
  const int64_t warps = z.chunks * z.samples * z.heads;
  if (warp >= warps) return;
  const int lane = LaneIndex(), head = static_cast<int>(warp % z.heads);
  const int64_t sample = warp / z.heads % z.samples, chunk = warp / (z.heads * z.samples);
  const int64_t first = warp * kChunk + lane * kEach;

  // The gradient of decay at each position, then of dt A, which sums it over all later positions of the chunk.
  const float kept =
      WarpSum(out.kept[warp * kScanHeadDim + lane] + out.kept[warp * kScanHeadDim + lane + kScanHeadDim / 2]);
  float da[kEach], left = 0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const float w = out.left[first + v];
    da[v] = out.within[first + v] + out.read[first + v] - w;
    left += w;
  }
  left = WarpSum(left);
  if (lane == 31) da[kEach - 1] += kept + left;
#pragma unroll
  for (int v = kEach - 2; v >= 0; --v) da[v] += da[v + 1];
  float later = da[0];
  for (int distance = 1; distance < 32; distance *= 2) {
    const float behind = __shfl_down_sync(0xffffffff, later, distance);
    if (lane + distance < 32) later += behind;
  }
  const float next = __shfl_down_sync(0xffffffff, later, 1);

  const float a = -expf(Wide(in.a_log[head])), bias = Wide(in.dt_bias[head]);
  float of_a = 0, of_d = 0, of_bias = 0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const int64_t position = chunk * kChunk + lane * kEach + v;
    if (position >= z.positions) break;
    if (lane < 31) da[v] += next;
    const int64_t row = position * z.samples + sample;
    const float raw = Wide(in.zxbcdt[(row + 1) * in.zxbcdt_width - z.heads + head]) + bias;
    const float draw = (out.du_x[first + v] + da[v] * a) * Sigmoid(raw);
    out.ddt[row * z.heads + head] = __float2bfloat16_rn(draw);
    of_a += da[v] * f.dt[first + v];
    of_d += out.dy_x[first + v];
    of_bias += draw;
  }
  of_a = WarpSum(of_a) * a;  // A = -exp(A_log), so dA/dA_log = A
  of_d = WarpSum(of_d);
  of_bias = WarpSum(of_bias);
  if (lane > 0) return;
  out.parameters[warp] = of_a;
  out.parameters[warps + warp] = of_d;
  out.parameters[2 * warps + warp] = of_bias;
}

}  // namespace

void LaunchScanPositionGradients(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                                 const ScanGradients& gradients, cudaStream_t stream) {
  const int64_t warps = z.chunks * z.samples * z.heads;
  const unsigned blocks = static_cast<unsigned>((warps + kHeadsEach - 1) / kHeadsEach);
  if (z.chunk == 64) {
    PositionGradientsKernel<64><<<blocks, kThreads, 0, stream>>>(z, inputs, factors, gradients);
  } else {
    PositionGradientsKernel<128><<<blocks, kThreads, 0, stream>>>(z, inputs, factors, gradients);
  }
}

}  // namespace planwright::executor::ops
