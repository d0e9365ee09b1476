// Kernels that put the rows of images at the image tokens of a batch (executor/ops/embedding.cc).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// Ids of tokens [samples, positions], contiguous. Values of the model lie by position: [positions, samples, width].
struct ImageTokens {
  const int64_t* ids = nullptr;
  int64_t samples = 0, positions = 0;
  int64_t image_token = 0;

  __host__ __device__ int64_t count() const { return samples * positions; }
};

// Numbers the image tokens sample by sample: row [positions, samples] gets the number of each, and -1 at other tokens;
// places [rows] gets where each number stands in it. `right` gets whether there are as many image tokens as `rows`; if
// not, the rest of both is not written.
void LaunchPlaceImageTokens(const ImageTokens& tokens, int64_t rows, int* row, int64_t* places, bool* right,
                            cudaStream_t stream);

// y [count, width] = x, and at image tokens the row that `row` says: in its place, or with `add` the sum, in fp32 and
// rounded. Matrices are contiguous and on 16 bytes, and width is a multiple of 8.
void LaunchPutImageRows(const __nv_bfloat16* x, const __nv_bfloat16* rows, const int* row, bool add, __nv_bfloat16* y,
                        int64_t count, int64_t width, cudaStream_t stream);

}  // namespace planwright::executor::ops
