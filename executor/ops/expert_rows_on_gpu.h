// What ExpertRows does with kernels of its own on a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace planwright::executor::ops {

// counts i64 [L] on the GPU -> ends i32 [L], the row behind each run. The host does not wait: counts that do not add up
// to `rows` stop the device later.
at::Tensor EndsOfRuns(const at::Tensor& counts, int64_t rows);

// Rows by index i64 [rows], in any dtype, with rows that are aligned (gpu_rows.h): rows[index[i]] at row i, or
// rows[i] at row index[i]. index is a permutation.
at::Tensor GatherRows(const at::Tensor& rows, const at::Tensor& index);
at::Tensor ScatterRows(const at::Tensor& rows, const at::Tensor& index);

}  // namespace planwright::executor::ops
