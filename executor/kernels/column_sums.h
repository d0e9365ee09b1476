// The second half of a weight gradient: sums over partial sums, one row of which each thread block or warp has made.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace planwright::executor::ops {

// Adds the sum of each column of partials [rows, first_width + second_width] to first [first_width] and second
// [second_width], which are not parts of each other. All are contiguous fp32 on the device, at any address. The order
// of a sum depends on `rows` alone. No rows or no columns: nothing happens. second may be null if second_width is 0.
void LaunchAddColumnSums(const float* partials, int64_t rows, float* first, int64_t first_width, float* second,
                         int64_t second_width, cudaStream_t stream);

}  // namespace planwright::executor::ops
