// The gradient of an embedding table: tokens are sorted by row, and one thread block has all tokens of a row.
#include "executor/kernels/embedding.h"

namespace planwright::executor::ops {
namespace {

// A thread has 8 columns. Rows of a frequent token, such as padding, are many: kAtOnce of them are read at once.
constexpr int kThreads = 64, kWidth = 8, kAtOnce = 16;

// The first index behind `first` whose row is another.
__device__ int64_t EndOfRow(const SortedTokens& sorted, int64_t first) {
  const int64_t row = sorted.rows[first];
  int64_t low = first + 1, high = sorted.tokens;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted.rows[middle] > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

__device__ void AddWidened(const uint4& vector, float (&sum)[kWidth]) {
  const unsigned words[] = {vector.x, vector.y, vector.z, vector.w};
#pragma unroll
  for (int i = 0; i < kWidth / 2; ++i) {  // a bf16 number is the upper half of the same number in fp32
    sum[2 * i] += __uint_as_float(words[i] << 16);
    sum[2 * i + 1] += __uint_as_float(words[i] & 0xffff0000);
  }
}

// blockIdx.x counts tokens; the block of a row's first token has the row. blockIdx.y counts parts of a row.
__global__ void __launch_bounds__(kThreads)
    AddTokenRowsKernel(SortedTokens sorted, const uint4* de, int64_t vectors, float* gradient) {
  const int64_t first = blockIdx.x, row = sorted.rows[first];
  const int64_t vector = int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (row >= sorted.table_rows || (first > 0 && sorted.rows[first - 1] == row) || vector >= vectors) return;
  const int64_t end = EndOfRow(sorted, first);
  float sum[kWidth] = {};
  for (int64_t token = first; token < end; token += kAtOnce) {
    uint4 read[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (token + i < end) read[i] = de[sorted.numbers[token + i] * vectors + vector];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (token + i < end) AddWidened(read[i], sum);
    }
  }
  float4* out = reinterpret_cast<float4*>(gradient) + (row * vectors + vector) * 2;
  float4 low = out[0], high = out[1];
  low.x += sum[0], low.y += sum[1], low.z += sum[2], low.w += sum[3];
  high.x += sum[4], high.y += sum[5], high.z += sum[6], high.w += sum[7];
  out[0] = low, out[1] = high;
}

}  // namespace

void LaunchAddTokenRows(const SortedTokens& sorted, const __nv_bfloat16* de, int64_t width, float* gradient,
                        cudaStream_t stream) {
  if (sorted.tokens == 0) return;
  const int64_t vectors = width / kWidth;
  const dim3 blocks(static_cast<unsigned>(sorted.tokens), static_cast<unsigned>((vectors + kThreads - 1) / kThreads));
  AddTokenRowsKernel<<<blocks, kThreads, 0, stream>>>(sorted, reinterpret_cast<const uint4*>(de), vectors, gradient);
}

}  // namespace planwright::executor::ops
