// The kernels of executor/ops/fast/mamba_scan.cc: the Mamba-2 scan and its gradient for bf16, heads of 64 and a state
// of 128. The mathematics and its letters are those of docs/model/mamba.md#scan. nvcc compiles them, so this header
// includes nothing of LibTorch.
//
// All tensors are contiguous. Rows of bf16 and of fp32 tensors begin at multiples of 16 bytes, apart from zxbcdt, the
// parameters and ddt, which may lie anywhere. Factors and sums are fp32. Factors of matrix products are rounded to
// bf16, their sums are fp32, and so is the state that passes from chunk to chunk. No kernel uses atomics.
//
// "By position" means fp32 [chunks, samples, heads, chunk]. Positions behind the sequence, which fill the last chunk,
// have dt 0, and x, B, C and dy 0.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

constexpr int kScanHeadDim = 64, kScanState = 128;

struct ScanShape {
  int64_t positions = 0, samples = 0;
  int64_t chunks = 0;  // of `chunk` positions; the last may be short
  int chunk = 0;       // 64 or 128
  int heads = 0, groups = 0;
};

struct ScanInputs {
  const __nv_bfloat16* xbc = nullptr;     // [positions, samples, heads 64 + 2 groups 128]: x, B, C
  const __nv_bfloat16* zxbcdt = nullptr;  // [positions, samples, zxbcdt_width]: the last `heads` columns are dt
  int64_t zxbcdt_width = 0;
  const __nv_bfloat16 *a_log = nullptr, *d = nullptr, *dt_bias = nullptr;  // [heads]
  const int64_t* document = nullptr;  // [positions] ascending, the document of each position; null: one document
};

// What the kernels share; LaunchScanFactors writes it. The first five are by position. Across the end of a document
// from_start, to_end and added are 0.
struct ScanFactors {
  float* dt = nullptr;          // after softplus
  float* decay = nullptr;       // running sum of dt A, as a power of two: exp(decay_i - decay_j) is 2^(this - that)
  float* from_start = nullptr;  // exp(decay): what a position sees of the chunk's start state
  float* to_end = nullptr;      // exp(total - decay): what is left of a position at the chunk's end
  float* added = nullptr;       // dt to_end
  // [chunks, chunk], offsets in the chunk: the first of a position's document, and the one behind its last. Null where
  // document is.
  int *document_begin = nullptr, *document_end = nullptr;
};

// What the backward's kernels pass on, and what they make.
struct ScanGradients {
  // [chunks, samples, heads, 64, 256]: of each row of a state first its gradient at the chunk's end, then its value at
  // the chunk's start, 128 each. Before LaunchScanStateGradients has finished, the same memory holds fp32 [.., 64,
  // 128].
  __nv_bfloat16* states = nullptr;
  float* kept = nullptr;  // [chunks, samples, heads, 64]: per row, exp(total) sum of (dend * state)
  // [chunks, samples, groups, chunk, chunk]: G of the document, transposed: element (j, i) is G_ij.
  __nv_bfloat16* pairs = nullptr;
  // By position: the gradient of decay within the chunk; w; read . (state C); du . x; dy . x
  float *within = nullptr, *left = nullptr, *read = nullptr, *du_x = nullptr, *dy_x = nullptr;

  __nv_bfloat16* dxbc = nullptr;  // as xbc
  __nv_bfloat16* ddt = nullptr;   // [positions, samples, heads]
  float* parameters = nullptr;    // [3, chunks samples, heads]: terms of the gradients of A_log, D and dt_bias
};

// Writes `factors`.
void LaunchScanFactors(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors,
                       cudaStream_t stream);

// states: fp32 [chunks, samples, heads, 64, 128], the state at each chunk's start, from x and B. `narrow` gets the same
// in bf16.
void LaunchScanStates(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors, float* states,
                      __nv_bfloat16* narrow, cudaStream_t stream);

// y [positions, samples, heads 64] from the states in bf16.
void LaunchScanOutput(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors,
                      const __nv_bfloat16* narrow, __nv_bfloat16* y, cudaStream_t stream);

// gradients.states and gradients.kept from dy [positions, samples, heads 64] and the forward's states.
void LaunchScanStateGradients(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors,
                              const __nv_bfloat16* dy, const float* states, const ScanGradients& gradients,
                              cudaStream_t stream);

// dx, and pairs, within, left, du_x and dy_x. Needs gradients.states.
void LaunchScanHeadGradients(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors,
                             const __nv_bfloat16* dy, const ScanGradients& gradients, cudaStream_t stream);

// dB and dC, and read. Needs gradients.states and pairs.
void LaunchScanGroupGradients(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors,
                              const __nv_bfloat16* dy, const ScanGradients& gradients, cudaStream_t stream);

// ddt, and the terms of the parameters' gradients. Needs all of the above.
void LaunchScanPositionGradients(const ScanShape& shape, const ScanInputs& inputs, const ScanFactors& factors,
                                 const ScanGradients& gradients, cudaStream_t stream);

// Shared memory that a block of the largest kernel takes, in bytes.
constexpr int64_t kScanSharedMemory = 196 * 1024;

}  // namespace planwright::executor::ops
