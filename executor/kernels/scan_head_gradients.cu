// The gradient of the Mamba-2 scan, part one: everything that belongs to one head (mamba_scan.h).
#include "executor/kernels/scan_block.cuh"

namespace planwright::executor::ops {
namespace {

// Shared memory: B and C, and of two heads in turn x, dy, the gradient of the end state and three factors. Besides,
// sums of two heads in turn: of ddecay by position j, and by position i for each 16 positions j.
template <int kChunk>
struct HeadMemory {
  static constexpr int kStrips = kChunk / 16;
  static constexpr int kGroup = 2 * StateTile::Elements(kChunk);
  static constexpr int kHead = 2 * XTile::Elements(kChunk) + StateTile::Elements(kScanHeadDim);
  static constexpr int kFloats = (3 + 1 + kStrips) * kChunk;
  static constexpr int kBytes = (kGroup + 2 * kHead) * 2 + 2 * kFloats * 4;
  static_assert(kBytes <= kScanSharedMemory);

  __nv_bfloat16* elements;
  __device__ StateTile B() const { return {elements}; }
  __device__ StateTile C() const { return {elements + StateTile::Elements(kChunk)}; }
  __device__ XTile X(int head) const { return {elements + kGroup + head % 2 * kHead}; }
  __device__ XTile Dy(int head) const { return {X(head).data + XTile::Elements(kChunk)}; }
  __device__ StateTile EndGradient(int head) const { return {Dy(head).data + XTile::Elements(kChunk)}; }
  __device__ float* Factors(int head) const {
    return reinterpret_cast<float*>(elements + kGroup + 2 * kHead) + head % 2 * kFloats;
  }
  __device__ float* ByJ(int head) const { return Factors(head) + 3 * kChunk; }
  __device__ float* ByI(int head, int strip) const { return Factors(head) + (4 + strip) * kChunk; }
};

// Sums of four columns over the eight lanes with the same l % 4. A lane ends with one of them: the second pair of
// columns if l & 16, the second of a pair if l & 8. Lanes that differ in l & 4 only have the same.
__device__ float ColumnSum(const float (&columns)[4]) {
  const bool second_pair = (LaneIndex() & 16) != 0, second = (LaneIndex() & 8) != 0;
  float first_sum = second_pair ? columns[2] : columns[0], second_sum = second_pair ? columns[3] : columns[1];
  first_sum += __shfl_xor_sync(0xffffffff, second_pair ? columns[0] : columns[2], 16);
  second_sum += __shfl_xor_sync(0xffffffff, second_pair ? columns[1] : columns[3], 16);
  float sum = second ? second_sum : first_sum;
  sum += __shfl_xor_sync(0xffffffff, second ? first_sum : second_sum, 8);
  return sum + __shfl_xor_sync(0xffffffff, sum, 4);
}

// All matrices over pairs of positions are transposed, with rows j and columns i. A warp has 16 positions j of the
// chunk, and in registers the products C_i . B_j and the sums G_ij of them with all later ones.
template <int kChunk>
__global__ void __launch_bounds__(2 * kChunk, 1)
    HeadGradientsKernel(ScanShape z, ScanInputs in, ScanFactors f, const __nv_bfloat16* dy, ScanGradients out) {
  constexpr int kThreads = 2 * kChunk, kStrips = kChunk / 16;
  extern __shared__ uint4 memory[];
  const HeadMemory<kChunk> shared{reinterpret_cast<__nv_bfloat16*>(memory)};
  const ScanBlock block(z, 0);
  const int64_t width = block.xbc_width();
  const __nv_bfloat16* rows = in.xbc + block.first_row * width;
  const auto begin_head = [&](int head) {
    const int64_t of = block.first_head + head;
    BeginTile<kThreads, kChunk>(shared.X(head), rows + block.XColumn(head), block.row_step * width, block.there);
    BeginTile<kThreads, kChunk>(shared.Dy(head), dy + block.first_row * block.inner + block.XColumn(head),
                                block.row_step * block.inner, block.there);
    BeginTile<kThreads, kScanHeadDim>(shared.EndGradient(head), out.states + of * kScanHeadDim * 2 * kScanState,
                                      2 * kScanState, kScanHeadDim);
    float* factors = shared.Factors(head);
    BeginFloats<kThreads, kChunk>(factors, f.decay + of * kChunk);
    BeginFloats<kThreads, kChunk>(factors + kChunk, f.dt + of * kChunk);
    BeginFloats<kThreads, kChunk>(factors + 2 * kChunk, f.to_end + of * kChunk);
  };
  BeginTile<kThreads, kChunk>(shared.B(), rows + block.BColumn(), block.row_step * width, block.there);
  BeginTile<kThreads, kChunk>(shared.C(), rows + block.CColumn(), block.row_step * width, block.there);
  begin_head(0);
  WaitForCopies();
  __syncthreads();

  const int strip = StripOfWarp<kStrips>(), lane = LaneIndex(), pair = lane % 4 * 2;
  const int j0 = strip * 16 + lane / 4, j1 = j0 + 8;  // the positions of this lane
  int end0 = kChunk, end1 = kChunk;                   // where their documents end
  if (f.document_end != nullptr) {
    end0 = f.document_end[block.chunk * kChunk + j0];
    end1 = f.document_end[block.chunk * kChunk + j1];
  }

  float cb[kChunk / 8][4] = {}, pairs[kChunk / 8][4] = {};
  uint32_t b_rows[kScanState / 16][4];
#pragma unroll
  for (int n = 0; n < kScanState / 16; ++n) LoadLeft(b_rows[n], shared.B(), strip * 16, n * 16);
#pragma unroll
  for (int i = 0; i < kStrips; ++i) {
    if (i < strip) continue;
#pragma unroll
    for (int n = 0; n < kScanState / 16; ++n) {
      uint32_t b[4];
      LoadRightTransposed(b, shared.C(), i * 16, n * 16);
      MultiplyAdd(cb[2 * i], cb[2 * i + 1], b_rows[n], b);
    }
  }

  for (int head = 0; head < block.heads; ++head) {
    if (head + 1 < block.heads) begin_head(head + 1);
    const XTile x = shared.X(head), dy_tile = shared.Dy(head);
    const float *decay = shared.Factors(head), *dt = decay + kChunk, *to_end = dt + kChunk;
    const float dt0 = dt[j0], dt1 = dt[j1], decay0 = decay[j0], decay1 = decay[j1];

    // du through the state at the chunk's end
    float du[kScanHeadDim / 8][4] = {};
    uint32_t b[4];
#pragma unroll
    for (int n = 0; n < kScanState; n += 16) {
      uint32_t a[4];
      LoadLeft(a, shared.B(), strip * 16, n);
#pragma unroll
      for (int p = 0; p < kScanHeadDim / 16; ++p) {
        LoadRightTransposed(b, shared.EndGradient(head), p * 16, n);
        MultiplyAdd(du[2 * p], du[2 * p + 1], a, b);
      }
    }
    const float left0 = to_end[j0], left1 = to_end[j1];
    float w0 = 0, w1 = 0;
#pragma unroll
    for (int p = 0; p < kScanHeadDim / 8; ++p) {
      const float2 x0 = x.Pair(j0, p * 8 + pair), x1 = x.Pair(j1, p * 8 + pair);
      du[p][0] *= left0, du[p][1] *= left0;
      du[p][2] *= left1, du[p][3] *= left1;
      w0 += du[p][0] * x0.x + du[p][1] * x0.y;
      w1 += du[p][2] * x1.x + du[p][3] * x1.y;
    }

    // du within the chunk, and the gradients of C_i . B_j and of the decays between j and i
    uint32_t x_rows[kScanHeadDim / 16][4];
#pragma unroll
    for (int p = 0; p < kScanHeadDim / 16; ++p) LoadLeft(x_rows[p], x, strip * 16, p * 16);
    float by_j0 = 0, by_j1 = 0;
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
      if (i < strip) continue;
      float product[2][4] = {};  // x_j . dy_i
#pragma unroll
      for (int p = 0; p < kScanHeadDim / 16; ++p) {
        LoadRightTransposed(b, dy_tile, i * 16, p * 16);
        MultiplyAdd(product[0], product[1], x_rows[p], b);
      }
      float by_i[4];
      uint32_t seen[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = i * 16 + half * 8 + pair;
        const float2 d = *reinterpret_cast<const float2*>(decay + at);
        float seen_ij[4], exponent_ij[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = e < 2 ? j0 : j1, column = at + e % 2;
          const bool visible = column >= row && column < (e < 2 ? end0 : end1);
          // Masked before the power: above the diagonal it may be infinite.
          const float power = PowerOfTwo(visible ? (e % 2 == 0 ? d.x : d.y) - (e < 2 ? decay0 : decay1) : -INFINITY);
          const float g = power * (e < 2 ? dt0 : dt1) * product[half][e];
          const float of_pair = cb[2 * i + half][e];
          pairs[2 * i + half][e] += g;
          seen_ij[e] = of_pair * power;
          // The exponent decay_i - decay_i is 0 for every A, so it has no gradient. The two sums over it would cancel
          // only up to rounding, so the diagonal is left out of both.
          exponent_ij[e] = column > row ? of_pair * g : 0.0f;
        }
        seen[2 * half] = Packed(seen_ij[0], seen_ij[1]);
        seen[2 * half + 1] = Packed(seen_ij[2], seen_ij[3]);
        by_j0 += exponent_ij[0] + exponent_ij[1];
        by_j1 += exponent_ij[2] + exponent_ij[3];
        by_i[2 * half] = exponent_ij[0] + exponent_ij[2];
        by_i[2 * half + 1] = exponent_ij[1] + exponent_ij[3];
      }
      const float sum = ColumnSum(by_i);
      if ((lane & 4) == 0) shared.ByI(head, strip)[i * 16 + lane / 16 * 8 + pair + lane / 8 % 2] = sum;
#pragma unroll
      for (int p = 0; p < kScanHeadDim / 16; ++p) {
        LoadRight(b, dy_tile, i * 16, p * 16);
        MultiplyAdd(du[2 * p], du[2 * p + 1], seen, b);
      }
    }

    const float skip = Wide(in.d[block.Head(head)]);
    float du_x0 = 0, du_x1 = 0, dy_x0 = 0, dy_x1 = 0;
    __nv_bfloat16* dx = out.dxbc + (block.first_row + j0 * block.row_step) * width + block.XColumn(head) + pair;
#pragma unroll
    for (int p = 0; p < kScanHeadDim / 8; ++p) {
      const float2 x0 = x.Pair(j0, p * 8 + pair), x1 = x.Pair(j1, p * 8 + pair);
      const float2 dy0 = dy_tile.Pair(j0, p * 8 + pair), dy1 = dy_tile.Pair(j1, p * 8 + pair);
      du_x0 += du[p][0] * x0.x + du[p][1] * x0.y;
      du_x1 += du[p][2] * x1.x + du[p][3] * x1.y;
      dy_x0 += dy0.x * x0.x + dy0.y * x0.y;
      dy_x1 += dy1.x * x1.x + dy1.y * x1.y;
      if (j0 < block.there) WritePair(dx + p * 8, dt0 * du[p][0] + skip * dy0.x, dt0 * du[p][1] + skip * dy0.y);
      if (j1 < block.there)
        WritePair(dx + 8 * block.row_step * width + p * 8, dt1 * du[p][2] + skip * dy1.x,
                  dt1 * du[p][3] + skip * dy1.y);
    }
    by_j0 = RowSum(by_j0), by_j1 = RowSum(by_j1);
    w0 = RowSum(w0), w1 = RowSum(w1);
    du_x0 = RowSum(du_x0), du_x1 = RowSum(du_x1);
    dy_x0 = RowSum(dy_x0), dy_x1 = RowSum(dy_x1);
    const int64_t first = (block.first_head + head) * kChunk;
    if (lane % 4 == 0) {
      shared.ByJ(head)[j0] = by_j0, shared.ByJ(head)[j1] = by_j1;
      // total - decay_j is 0 at the last position for every A: as above, its gradient is left out.
      out.left[first + j0] = dt0 * w0, out.left[first + j1] = j1 == kChunk - 1 ? 0.0f : dt1 * w1;
      out.du_x[first + j0] = du_x0, out.du_x[first + j1] = du_x1;
      out.dy_x[first + j0] = dy_x0, out.dy_x[first + j1] = dy_x1;
    }
    WaitForCopies();
    __syncthreads();
    // The sums of this head are not overwritten before the end of the next one.
    for (int i = static_cast<int>(threadIdx.x); i < kChunk; i += kThreads) {
      float sum = 0;
      for (int from = 0; from <= i / 16; ++from) sum += shared.ByI(head, from)[i];
      out.within[first + i] = sum - shared.ByJ(head)[i];
    }
  }

  __nv_bfloat16* to = out.pairs + (static_cast<int64_t>(blockIdx.x) * kChunk + j0) * kChunk + pair;
#pragma unroll
  for (int i = 0; i < kChunk / 8; ++i) {
    WritePair(to + i * 8, pairs[i][0], pairs[i][1]);
    WritePair(to + 8 * kChunk + i * 8, pairs[i][2], pairs[i][3]);
  }
}

template <int kChunk>
void LaunchHeadGradients(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                         const __nv_bfloat16* dy, const ScanGradients& gradients, cudaStream_t stream) {
  LaunchWithMemory(HeadGradientsKernel<kChunk>, ScanBlocks(z, z.chunks), 2 * kChunk, HeadMemory<kChunk>::kBytes, stream,
                   z, inputs, factors, dy, gradients);
}

}  // namespace

void LaunchScanHeadGradients(const ScanShape& z, const ScanInputs& inputs, const ScanFactors& factors,
                             const __nv_bfloat16* dy, const ScanGradients& gradients, cudaStream_t stream) {
  if (z.chunk == 64) {
    LaunchHeadGradients<64>(z, inputs, factors, dy, gradients, stream);
  } else {
    LaunchHeadGradients<128>(z, inputs, factors, dy, gradients, stream);
  }
}

}  // namespace planwright::executor::ops
