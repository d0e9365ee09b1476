// Attention of sequences, not causal, forward and backward, on Hopper's tensor cores: heads of 64 or 80 elements, as
// vision encoders have them. No score is ever in memory.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

// Sequences of one length, one behind the other.
struct EqualSequences {
  int64_t sequences = 0, length = 0;

  int64_t rows() const { return sequences * length; }
};

// Rows of all sequences, one sequence behind the other, on the current device. Rows of q, k and v are `stride` elements
// apart: they may be columns of one tensor. With width = heads * head_dim:
struct Attention {
  const __nv_bfloat16 *q = nullptr, *k = nullptr, *v = nullptr;  // [rows, width]
  int64_t stride = 0;
  std::vector<EqualSequences> runs;  // in the order of their rows; a launch takes 16 of them at a time
  int64_t heads = 0, head_dim = 0;
  double scale = 1;  // of scores

  int64_t rows() const;
};

// What the backward reads and writes besides. All but dq, dk and dv is contiguous.
struct AttentionGradients {
  const __nv_bfloat16* a = nullptr;                           // [rows, width], of the forward
  const float* lse = nullptr;                                 // [heads, rows], of the forward
  const __nv_bfloat16* da = nullptr;                          // [rows, width]
  __nv_bfloat16 *dq = nullptr, *dk = nullptr, *dv = nullptr;  // [rows, width], written
  int64_t stride = 0;                                         // from row to row of dq, dk and dv
  float* workspace = nullptr;                                 // AttentionWorkspace(x) elements; what it holds is lost
};

// Whether the kernels take it: compute capability 9.0, heads of 64 or 80 elements, at least one head, one run, and one
// row in each, fewer than 2^31 elements of a width in all rows, at most 65,535 heads and sequences of a run, q, k and v
// on 16 bytes, and a stride that is a multiple of 8.
bool HopperTakes(const Attention& x);

// fp32 elements: dq before it is rounded, and two numbers for each row and head. Rows of a sequence are rounded up to a
// multiple of 64.
int64_t AttentionWorkspace(const Attention& x);

// For each sequence and head, a [rows, width] and lse [heads, rows], both contiguous, of rows i and m of the sequence:
//   score[i, m] = scale q[i] . k[m],  lse[i] = log(sum over m of exp(score[i, m])),
//   a[i] = sum over m of exp(score[i, m] - lse[i]) v[m]
// Sums are fp32; exp(...) is rounded to bf16 before the last. The same task gives the same bits.
//
// Nothing is allocated and the host does not wait. The result is an error of the preparation (no driver function for
// tensor maps, a map that the driver refuses); like for any kernel, an error of the launch is CUDA's last error.
cudaError_t LaunchAttention(const Attention& x, __nv_bfloat16* a, float* lse, cudaStream_t stream);

// With p[i, m] = exp(score[i, m] - lse[i]) and ds[i, m] = p[i, m] (da[i] . v[m] - da[i] . a[i]), both rounded to bf16:
//   dv[m] = sum over i of p[i, m] da[i],  dk[m] = scale sum over i of ds[i, m] q[i],  dq[i] = scale sum over m of
//   ds[i, m] k[m]
// Sums are fp32. The order of those of dq is not fixed. a, da, dq, dk and dv are on 16 bytes, their stride is a
// multiple of 8. Errors are those of LaunchAttention.
cudaError_t LaunchAttentionGrad(const Attention& x, const AttentionGradients& d, cudaStream_t stream);

}  // namespace planwright::executor::ops
