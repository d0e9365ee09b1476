// See expert_rows_on_gpu.h.
#include "executor/ops/expert_rows_on_gpu.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "executor/kernels/expert_runs.h"
#include "executor/kernels/row_moves.h"
#include "executor/ops/cuda_operands.h"

namespace planwright::executor::ops {

at::Tensor EndsOfRuns(const at::Tensor& counts, int64_t rows) {
  TORCH_CHECK(rows <= std::numeric_limits<int>::max(), rows, " expert rows are too many for offsets of 32 bits");
  const at::Tensor all = counts.reshape({-1}).contiguous();
  const at::Tensor ends = at::empty({all.size(0)}, all.options().dtype(at::kInt));
  LaunchEndsOfRuns(Elements<int64_t>(all), all.size(0), rows, Elements<int>(ends), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return ends;
}

at::Tensor GatherRows(const at::Tensor& rows, const at::Tensor& index) {
  const at::Tensor out = at::empty_like(rows);
  LaunchGatherRows(rows.const_data_ptr(), Elements<int64_t>(index), rows.size(0), rows.size(1) * rows.element_size(),
                   out.mutable_data_ptr(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

at::Tensor ScatterRows(const at::Tensor& rows, const at::Tensor& index) {
  const at::Tensor out = at::empty_like(rows);
  LaunchScatterRows(rows.const_data_ptr(), Elements<int64_t>(index), rows.size(0), rows.size(1) * rows.element_size(),
                    out.mutable_data_ptr(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

}  // namespace planwright::executor::ops
