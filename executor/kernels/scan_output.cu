// The outputs of the Mamba-2 scan (mamba_scan.h).
#include "executor/kernels/scan_block.cuh"

namespace planwright::executor::ops {
namespace {

// Shared memory: C, and of two heads in turn x, the state and three factors. B is needed only before the first head,
// and lies where the second head's x and state will be.
template <int kChunk>
struct OutputMemory {
  static constexpr int kHead = XTile::Elements(kChunk) + StateTile::Elements(kScanHeadDim);
  static constexpr int kBytes = (StateTile::Elements(kChunk) + 2 * kHead) * 2 + 2 * 3 * kChunk * 4;
  static_assert(StateTile::Elements(kChunk) <= kHead);

  __nv_bfloat16* elements;
  __device__ StateTile C() const { return {elements}; }
  __device__ XTile X(int head) const { return {elements + StateTile::Elements(kChunk) + head % 2 * kHead}; }
  __device__ StateTile State(int head) const { return {X(head).data + XTile::Elements(kChunk)}; }
  __device__ StateTile B() const { return {X(1).data}; }
  __device__ float* Factors(int head) const {
    return reinterpret_cast<float*>(elements + StateTile::Elements(kChunk) + 2 * kHead) + head % 2 * 3 * kChunk;
  }
};

// A warp has 16 positions i of the chunk, and the products C_i . B_j of them with all earlier ones, in registers.
template <int kChunk>
__global__ void __launch_bounds__(2 * kChunk, 2)
    OutputKernel(ScanShape z, ScanInputs in, ScanFactors f, const __nv_bfloat16* narrow, __nv_bfloat16* y) {
  constexpr int kThreads = 2 * kChunk, kStrips = kChunk / 16;
  extern __shared__ uint4 memory[];
  const OutputMemory<kChunk> shared{reinterpret_cast<__nv_bfloat16*>(memory)};
  const ScanBlock block(z, 0);
  const int64_t width = block.xbc_width();
  const __nv_bfloat16* rows = in.xbc + block.first_row * width;
  const auto begin_head = [&](int head) {
    const int64_t of = block.first_head + head;
    BeginTile<kThreads, kChunk>(shared.X(head), rows + block.XColumn(head), block.row_step * width, block.there);
    BeginTile<kThreads, kScanHeadDim>(shared.State(head), narrow + of * kScanHeadDim * kScanState, kScanState,
                                      kScanHeadDim);
    float* factors = shared.Factors(head);
    BeginFloats<kThreads, kChunk>(factors, f.decay + of * kChunk);
    BeginFloats<kThreads, kChunk>(factors + kChunk, f.dt + of * kChunk);
    BeginFloats<kThreads, kChunk>(factors + 2 * kChunk, f.from_start + of * kChunk);
  };
  BeginTile<kThreads, kChunk>(shared.C(), rows + block.CColumn(), block.row_step * width, block.there);
  BeginTile<kThreads, kChunk>(shared.B(), rows + block.BColumn(), block.row_step * width, block.there);
  begin_head(0);
  WaitForCopies();
  __syncthreads();

  const int strip = StripOfWarp<kStrips>(), lane = LaneIndex(), pair = lane % 4 * 2;
  const int i0 = strip * 16 + lane / 4, i1 = i0 + 8;  // the positions of this lane
  int begin0 = 0, begin1 = 0;                         // where their documents begin
  if (f.document_begin != nullptr) {
    begin0 = f.document_begin[block.chunk * kChunk + i0];
    begin1 = f.document_begin[block.chunk * kChunk + i1];
  }

  float cb[kChunk / 8][4] = {};
  uint32_t c_rows[kScanState / 16][4];
#pragma unroll
  for (int n = 0; n < kScanState / 16; ++n) LoadLeft(c_rows[n], shared.C(), strip * 16, n * 16);
#pragma unroll
  for (int j = 0; j < kStrips; ++j) {
    if (j > strip) continue;
#pragma unroll
    for (int n = 0; n < kScanState / 16; ++n) {
      uint32_t b[4];
      LoadRightTransposed(b, shared.B(), j * 16, n * 16);
      MultiplyAdd(cb[2 * j], cb[2 * j + 1], c_rows[n], b);
    }
  }
  __syncthreads();  // the second head comes where B is

  for (int head = 0; head < block.heads; ++head) {
    if (head + 1 < block.heads) begin_head(head + 1);
    const XTile x = shared.X(head);
    const StateTile state = shared.State(head);
    const float *decay = shared.Factors(head), *dt = decay + kChunk, *from_start = dt + kChunk;

    float sum[kScanHeadDim / 8][4] = {};
    uint32_t a[4], b[4];
#pragma unroll
    for (int n = 0; n < kScanState; n += 16) {
      LoadLeft(a, shared.C(), strip * 16, n);
#pragma unroll
      for (int p = 0; p < kScanHeadDim / 16; ++p) {
        LoadRightTransposed(b, state, p * 16, n);
        MultiplyAdd(sum[2 * p], sum[2 * p + 1], a, b);
      }
    }
    const float start0 = from_start[i0], start1 = from_start[i1];
#pragma unroll
    for (int p = 0; p < kScanHeadDim / 8; ++p) {
      sum[p][0] *= start0, sum[p][1] *= start0;
      sum[p][2] *= start1, sum[p][3] *= start1;
    }

    const float decay0 = decay[i0], decay1 = decay[i1];
#pragma unroll
    for (int j = 0; j < kStrips; ++j) {
      if (j > strip) continue;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = j * 16 + half * 8 + pair;
        const float2 d = *reinterpret_cast<const float2*>(decay + at), t = *reinterpret_cast<const float2*>(dt + at);
        // Masked before the power: above the diagonal it may be infinite.
        const auto seen = [&](float product, int i, int begin, int other, float own, float decayed, float step) {
          const bool visible = other <= i && other >= begin;
          return product * PowerOfTwo(visible ? own - decayed : -INFINITY) * step;
        };
        const float(&products)[4] = cb[2 * j + half];
        a[2 * half] = Packed(seen(products[0], i0, begin0, at, decay0, d.x, t.x),
                             seen(products[1], i0, begin0, at + 1, decay0, d.y, t.y));
        a[2 * half + 1] = Packed(seen(products[2], i1, begin1, at, decay1, d.x, t.x),
                                 seen(products[3], i1, begin1, at + 1, decay1, d.y, t.y));
      }
#pragma unroll
      for (int p = 0; p < kScanHeadDim / 16; ++p) {
        LoadRight(b, x, j * 16, p * 16);
        MultiplyAdd(sum[2 * p], sum[2 * p + 1], a, b);
      }
    }

    const float skip = Wide(in.d[block.Head(head)]);
    __nv_bfloat16* out = y + (block.first_row + i0 * block.row_step) * block.inner + block.XColumn(head) + pair;
#pragma unroll
    for (int p = 0; p < kScanHeadDim / 8; ++p) {
      const float2 x0 = x.Pair(i0, p * 8 + pair), x1 = x.Pair(i1, p * 8 + pair);
      if (i0 < block.there) WritePair(out + p * 8, fmaf(x0.x, skip, sum[p][0]), fmaf(x0.y, skip, sum[p][1]));
      if (i1 < block.there)
        WritePair(out + 8 * block.row_step * block.inner + p * 8, fmaf(x1.x, skip, sum[p][2]),
                  fmaf(x1.y, skip, sum[p][3]));
    }
    WaitForCopies();
    __syncthreads();
  }
}

template <int kChunk>
void LaunchOutput(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors, const __nv_bfloat16* narrow,
                  __nv_bfloat16* y, cudaStream_t stream) {
  LaunchWithMemory(OutputKernel<kChunk>, ScanBlocks(z, z.chunks), 2 * kChunk, OutputMemory<kChunk>::kBytes, stream, z,
                   inputs, factors, narrow, y);
}

}  // namespace

void LaunchScanOutput(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                      const __nv_bfloat16* narrow, __nv_bfloat16* y, cudaStream_t stream) {
  if (z.chunk == 64) {
    LaunchOutput<64>(z, inputs, factors, narrow, y, stream);
  } else {
    LaunchOutput<128>(z, inputs, factors, narrow, y, stream);
  }
}

}  // namespace planwright::executor::ops
