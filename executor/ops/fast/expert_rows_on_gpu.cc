#include "executor/ops/fast/expert_rows_on_gpu.h"

#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <limits>

#include "executor/base/tensors.h"
#include "executor/kernels/expert_runs.h"
#include "executor/kernels/row_moves.h"
#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/gpu_rows.h"
#include "executor/ops/fast/grouped_product.h"

namespace planwright::executor::ops {
namespace {

// counts i64 [L] on the GPU -> ends i32 [L], the row behind each run. The host does not wait: counts that do not add up
// to `rows` stop the device later.
at::Tensor EndsOfRuns(const at::Tensor& counts, int64_t rows) {
  TORCH_CHECK(rows <= std::numeric_limits<int>::max(), rows, " expert rows are too many for offsets of 32 bits");
  const at::Tensor all = counts.reshape({-1}).contiguous();
  const at::Tensor ends = at::empty({all.size(0)}, all.options().dtype(at::kInt));
  LaunchEndsOfRuns(Elements<int64_t>(all), all.size(0), rows, Elements<int>(ends), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return ends;
}

// rows[index[i]] at row i, in any dtype. Rows are aligned (gpu_rows.h), index i64 [rows] is a permutation.
at::Tensor GatherRows(const at::Tensor& rows, const at::Tensor& index) {
  const at::Tensor out = at::empty_like(rows);
  LaunchGatherRows(rows.const_data_ptr(), Elements<int64_t>(index), rows.size(0), rows.size(1) * rows.element_size(),
                   out.mutable_data_ptr(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

// And back: rows[i] at row index[i].
at::Tensor ScatterRows(const at::Tensor& rows, const at::Tensor& index) {
  const at::Tensor out = at::empty_like(rows);
  LaunchScatterRows(rows.const_data_ptr(), Elements<int64_t>(index), rows.size(0), rows.size(1) * rows.element_size(),
                    out.mutable_data_ptr(), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

bool HasMovableRows(const at::Tensor& x) { return x.dim() == 2 && HasAlignedRows(x); }

// LibTorch's grouped product takes bf16 only, and rows of whole 16 bytes.
bool LibTorchTakes(const at::Tensor& rows) {
  return rows.scalar_type() == at::kBFloat16 && rows.size(0) > 0 && HasAlignedRows(rows);
}

// matrices [L,i,o], each stored by rows or by columns.
bool LibTorchTakesMatrices(const at::Tensor& matrices) {
  return HasAlignedRows(matrices.stride(2) == 1 ? matrices : matrices.transpose(1, 2)) && matrices.size(2) % 8 == 0;
}

}  // namespace

ExpertRowsOnGpu::ExpertRowsOnGpu(const at::Tensor& counts, const at::Tensor& up, const at::Tensor& received)
    : ExpertRows(counts.is_cpu() ? ExpertRows(counts, up.size(0), received.size(0), received.device())
                                 : InOrder(up.size(0), received.device())) {
  if (counts.is_cpu()) {
    const int64_t sources = counts.numel() / up.size(0);
    if (!in_order() && MultipliesOnHopper(received, up.transpose(1, 2), sources))
      parts_ = ToDevice(at::tensor(arrival_ends(), at::kInt).view({sources, up.size(0)}), device_);
    return;
  }
  TORCH_CHECK(counts.numel() == up.size(0), "row counts of several source ranks must be on the host, not on ",
              counts.device());
  sorted_ends_ = EndsOfRuns(counts, received.size(0));
}

const at::Tensor& ExpertRowsOnGpu::sorted_ends() const {
  if (!sorted_ends_.defined()) sorted_ends_ = ToDevice(at::tensor(ends(), at::kInt), device_);
  return sorted_ends_;
}

at::Tensor ExpertRowsOnGpu::Sort(const at::Tensor& received) const {
  return parts_.defined() ? received : Sorted(received);
}

at::Tensor ExpertRowsOnGpu::Unsort(const at::Tensor& by_expert) const {
  return parts_.defined() ? by_expert : Unsorted(by_expert);
}

at::Tensor ExpertRowsOnGpu::Sorted(const at::Tensor& received) const {
  return !in_order() && HasMovableRows(received) ? GatherRows(received, index()) : ExpertRows::Sort(received);
}

at::Tensor ExpertRowsOnGpu::Unsorted(const at::Tensor& by_expert) const {
  return !in_order() && HasMovableRows(by_expert) ? ScatterRows(by_expert, index()) : ExpertRows::Unsort(by_expert);
}

at::Tensor ExpertRowsOnGpu::Product(const at::Tensor& x, const at::Tensor& matrices) const {
  if (!parts_.defined()) return SortedProduct(x, matrices);
  if (MultipliesOnHopper(x, matrices, parts_.size(0))) return GroupedProduct(x, matrices, parts_);
  const at::Tensor product = SortedProduct(Sorted(x), matrices);  // the sorted x is dropped here
  return Unsorted(product);
}

void ExpertRowsOnGpu::AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b,
                                       bool writes) const {
  if (!parts_.defined()) return AddSortedOuterProducts(sums, a, b, writes);
  if (AddsOuterProductsOnTensorCores(sums, a, b, parts_.size(0)))
    return AddGroupedOuterProducts(sums, a, b, parts_, writes);
  AddSortedOuterProducts(sums, Sorted(a), Sorted(b), writes);
}

at::Tensor ExpertRowsOnGpu::SortedProduct(const at::Tensor& x, const at::Tensor& matrices) const {
  if (MultipliesOnHopper(x, matrices)) return GroupedProduct(x, matrices, sorted_ends());
  if (LibTorchTakes(x) && LibTorchTakesMatrices(matrices)) return at::_grouped_mm(x, matrices, sorted_ends());
  return ends().empty() ? GroupedProduct(x, matrices, sorted_ends()) : ExpertRows::Product(x, matrices);
}

void ExpertRowsOnGpu::AddSortedOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b,
                                             bool writes) const {
  // Tensor cores take all experts at once. Without them a product for each is faster, if the host knows their rows.
  if (ends().empty() || AddsOuterProductsOnTensorCores(sums, a, b))
    return AddGroupedOuterProducts(sums, a, b, sorted_ends(), writes);
  ExpertRows::AddOuterProducts(sums, a, b, writes);
}

}  // namespace planwright::executor::ops
