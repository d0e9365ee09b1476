// Kernels of silu(gate) * rest (docs/model/decoder.md#gated-mlp), of the gated MLP and of gated experts. A row of
// gate_up [rows,2 width] is a gate and then as many features again. width is a multiple of 8, and matrices start at
// multiples of 16 bytes. Everything is computed in fp32 and rounded once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

struct GatedShape {
  int64_t rows = 0, width = 0;
};

// act [rows,width] = silu(gate) rest, times the weight of the row. weights [rows]; null: all are 1.
void LaunchGatedActivation(const __nv_bfloat16* gate_up, const float* weights, const GatedShape& shape,
                           __nv_bfloat16* act, cudaStream_t stream);

// From dact [rows,width] to dgate_up [rows,2 width], without weights.
void LaunchGatedActivationGradient(const __nv_bfloat16* dact, const __nv_bfloat16* gate_up, const GatedShape& shape,
                                   __nv_bfloat16* dgate_up, cudaStream_t stream);

// The same with weights [rows], and dweights [rows] = the sum over width of dact silu(gate) rest. dact becomes the
// activation of the forward, with its weight. dgate_up may be in the place of gate_up.
void LaunchWeightedGatedActivationGradient(__nv_bfloat16* dact, const __nv_bfloat16* gate_up, const float* weights,
                                           const GatedShape& shape, __nv_bfloat16* dgate_up, float* dweights,
                                           cudaStream_t stream);

}  // namespace planwright::executor::ops
