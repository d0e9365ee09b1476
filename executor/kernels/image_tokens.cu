// Rows of images at image tokens (image_tokens.h). One thread block numbers the tokens: a batch has few.
#include "executor/kernels/image_tokens.h"
#include "executor/kernels/row_math.cuh"

namespace planwright::executor::ops {
namespace {

constexpr int kNumberThreads = 1024, kPutThreads = 256;

// The sum of `value` over the threads before this one, and over all threads.
struct Before {
  int64_t before, all;

  __device__ Before(int value, int* of_warps) {
    const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
    const unsigned votes = __ballot_sync(kAllLanes, value != 0);
    if (lane == 0) of_warps[warp] = __popc(votes);
    __syncthreads();
    const int others = of_warps[lane], mine = lane < warp ? others : 0;
    before = __reduce_add_sync(kAllLanes, mine) + __popc(votes & ((1u << lane) - 1));
    all = __reduce_add_sync(kAllLanes, others);
    __syncthreads();
  }
};

__global__ void __launch_bounds__(kNumberThreads)
    PlaceImageTokensKernel(ImageTokens tokens, int64_t rows, int* row, int64_t* places, bool* right) {
  __shared__ int of_warps[kWarp];
  int64_t numbered = 0;
  for (int64_t first = 0; first < tokens.count(); first += kNumberThreads) {
    const int64_t token = first + threadIdx.x;
    const bool exists = token < tokens.count(), image = exists && tokens.ids[token] == tokens.image_token;
    const Before others(image, of_warps);
    if (exists) {
      const int64_t number = numbered + others.before;
      const int64_t place = token % tokens.positions * tokens.samples + token / tokens.positions;
      const bool has_row = image && number < rows;
      row[place] = has_row ? static_cast<int>(number) : -1;
      if (has_row) places[number] = place;
    }
    numbered += others.all;
  }
  if (threadIdx.x == 0) *right = numbered == rows;
}

__global__ void __launch_bounds__(kPutThreads) PutImageRowsKernel(const uint4* x, const uint4* rows, const int* row,
                                                                  bool add, uint4* y, int64_t count, int64_t vectors) {
  const int64_t at = int64_t{blockIdx.x} * kPutThreads + threadIdx.x;
  if (at >= count * vectors) return;
  const int of = row[at / vectors];
  uint4 value;
  if (of < 0 || add) value = x[at];
  if (of >= 0) {
    const uint4 image = rows[int64_t{of} * vectors + at % vectors];
    if (add) {
      float a[kVector], b[kVector];
      Widen(value, a);
      Widen(image, b);
#pragma unroll
      for (int i = 0; i < kVector; ++i) a[i] += b[i];
      value = Narrow(a);
    } else {
      value = image;
    }
  }
  y[at] = value;
}

}  // namespace

void LaunchPlaceImageTokens(const ImageTokens& tokens, int64_t rows, int* row, int64_t* places, bool* right,
                            cudaStream_t stream) {
  PlaceImageTokensKernel<<<1, kNumberThreads, 0, stream>>>(tokens, rows, row, places, right);
}

void LaunchPutImageRows(const __nv_bfloat16* x, const __nv_bfloat16* rows, const int* row, bool add, __nv_bfloat16* y,
                        int64_t count, int64_t width, cudaStream_t stream) {
  if (count == 0 || width == 0) return;
  const int64_t vectors = width / kVector, threads = count * vectors;
  PutImageRowsKernel<<<static_cast<unsigned>((threads + kPutThreads - 1) / kPutThreads), kPutThreads, 0, stream>>>(
      reinterpret_cast<const uint4*>(x), reinterpret_cast<const uint4*>(rows), row, add, reinterpret_cast<uint4*>(y),
      count, vectors);
}

}  // namespace planwright::executor::ops
