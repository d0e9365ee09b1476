// A kernel of executor/ops/fast/expert_rows_on_gpu.cc: the rows of one expert follow each other and are a run. nvcc
// compiles it, so nothing of LibTorch is here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// ends [runs]: the row behind each run, for counts [runs]. Stops the device if the counts do not add up to `rows`,
// which is below 2^31.
void LaunchEndsOfRuns(const int64_t* counts, int64_t runs, int64_t rows, int* ends, cudaStream_t stream);

}  // namespace planwright::executor::ops
