// dt and the decays of the Mamba-2 scan (mamba_scan.h).
#include "executor/kernels/scan_block.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kHeadsEach = 8, kThreads = kHeadsEach * 32;
constexpr float kLog2E = 1.44269504088896341f;

// log(1 + exp(x)) without overflow.
__device__ float Softplus(float x) { return fmaxf(x, 0.0f) + log1pf(expf(-fabsf(x))); }

// One document of a chunk, as a position sees it.
struct DocumentSpan {
  int begin, end;                    // offsets in the chunk
  bool from_before, to_end = false;  // has the position before the chunk; has the chunk's last position
};

// Positions behind the sequence belong to the last document.
__device__ DocumentSpan SpanOf(const ScanShape& z, const int64_t* document, int64_t chunk, int offset) {
  const int64_t first = chunk * z.chunk, last = z.positions - 1;
  const auto at = [&](int other) { return document[min(first + other, last)]; };
  const int64_t own = at(offset);
  DocumentSpan span;
  span.begin = 0, span.end = z.chunk;
  for (int above = offset; span.begin < above;) {
    const int middle = (span.begin + above) / 2;
    if (at(middle) < own) {
      span.begin = middle + 1;
    } else {
      above = middle;
    }
  }
  for (int below = offset + 1; below < span.end;) {
    const int middle = (below + span.end) / 2;
    if (at(middle) > own) {
      span.end = middle;
    } else {
      below = middle + 1;
    }
  }
  // Before the first chunk there is no position, and its start state is zero.
  span.from_before = chunk == 0 || document[first - 1] == own;
  span.to_end = span.end == z.chunk;
  return span;
}

// A block has a chunk of one sample and eight heads, a warp one head of them.
template <int kChunk>
__global__ void __launch_bounds__(kThreads) FactorsKernel(ScanShape z, ScanInputs in, ScanFactors out) {
  const int parts = (z.heads + kHeadsEach - 1) / kHeadsEach;
  const int part = static_cast<int>(blockIdx.x % parts);
  const int64_t chunk_sample = blockIdx.x / parts, sample = chunk_sample % z.samples, chunk = chunk_sample / z.samples;

  __shared__ float steps[kHeadsEach][kChunk + 1];
  for (int i = static_cast<int>(threadIdx.x); i < kChunk * kHeadsEach; i += kThreads) {
    const int head = part * kHeadsEach + i % kHeadsEach, offset = i / kHeadsEach;
    const int64_t position = chunk * kChunk + offset;
    float dt = 0;
    if (head < z.heads && position < z.positions) {
      const int64_t row = (position * z.samples + sample) * in.zxbcdt_width;
      dt = Softplus(Wide(in.zxbcdt[row + in.zxbcdt_width - z.heads + head]) + Wide(in.dt_bias[head]));
    }
    steps[i % kHeadsEach][offset] = dt;
  }
  __syncthreads();
  const int warp = WarpIndex(), lane = LaneIndex(), head = part * kHeadsEach + warp;
  if (head >= z.heads) return;

  // Each lane sums its own positions, then the sums of the lanes before are added.
  constexpr int kEach = kChunk / 32;
  const float a = -expf(Wide(in.a_log[head])) * kLog2E;
  float decay[kEach], sum = 0;
#pragma unroll
  for (int v = 0; v < kEach; ++v) decay[v] = sum += steps[warp][lane * kEach + v] * a;
  for (int distance = 1; distance < 32; distance *= 2) {
    const float before = __shfl_up_sync(0xffffffff, sum, distance);
    if (lane >= distance) sum += before;
  }
  const float previous = __shfl_up_sync(0xffffffff, sum, 1);
#pragma unroll
  for (int v = 0; v < kEach; ++v) decay[v] += lane == 0 ? 0.0f : previous;
  const float total = __shfl_sync(0xffffffff, decay[kEach - 1], 31);

  const int64_t first = (chunk_sample * z.heads + head) * kChunk;
#pragma unroll
  for (int v = 0; v < kEach; ++v) {
    const int offset = lane * kEach + v;
    const float dt = steps[warp][offset];
    float from_start = exp2f(decay[v]), to_end = exp2f(total - decay[v]);
    if (in.document != nullptr) {
      const DocumentSpan span = SpanOf(z, in.document, chunk, offset);
      if (!span.from_before) from_start = 0;
      if (!span.to_end) to_end = 0;
      if (head == 0 && sample == 0) {
        out.document_begin[chunk * kChunk + offset] = span.begin;
        out.document_end[chunk * kChunk + offset] = span.end;
      }
    }
    out.dt[first + offset] = dt;
    out.decay[first + offset] = decay[v];
    out.from_start[first + offset] = from_start;
    out.to_end[first + offset] = to_end;
    out.added[first + offset] = dt * to_end;
  }
}

}  // namespace

void LaunchScanFactors(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors, cudaStream_t stream) {
  const int64_t parts = (z.heads + kHeadsEach - 1) / kHeadsEach;
  const unsigned blocks = static_cast<unsigned>(z.chunks * z.samples * parts);
  if (z.chunk == 64) {
    FactorsKernel<64><<<blocks, kThreads, 0, stream>>>(z, inputs, factors);
  } else {
    FactorsKernel<128><<<blocks, kThreads, 0, stream>>>(z, inputs, factors);
  }
}

}  // namespace planwright::executor::ops
