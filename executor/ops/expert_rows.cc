#include "executor/ops/expert_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>

#ifdef PLANWRIGHT_CUDA
#include "executor/ops/expert_rows_on_gpu.h"
#include "executor/ops/gpu_rows.h"
#include "executor/ops/grouped_product.h"
#endif
#include "executor/ops/tensor_math.h"
#include "executor/tensors.h"

namespace planwright::executor::ops {
namespace {

#ifdef PLANWRIGHT_CUDA
// LibTorch's grouped product takes bf16 only, and rows of whole 16 bytes.
bool LibTorchTakes(const at::Tensor& rows) {
  return rows.scalar_type() == at::kBFloat16 && rows.size(0) > 0 && HasAlignedRows(rows);
}

// matrices [L,i,o], each stored by rows or by columns.
bool LibTorchTakesMatrices(const at::Tensor& matrices) {
  return HasAlignedRows(matrices.stride(2) == 1 ? matrices : matrices.transpose(1, 2)) && matrices.size(2) % 8 == 0;
}
#endif

}  // namespace

ExpertRows::ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device)
    : experts_(local_experts) {
  TORCH_CHECK(counts.numel() % experts_ == 0, "counts of shape ", counts.sizes(), " for ", experts_, " local experts");
  if (counts.is_cpu()) {
    OrderOnHost(counts, rows, device);
    return;
  }
  TORCH_CHECK(counts.numel() == experts_, "row counts of several source ranks must be on the host, not on ",
              counts.device());
#ifdef PLANWRIGHT_CUDA
  device_ends_ = EndsOfRuns(counts, rows);
#endif
}

void ExpertRows::OrderOnHost(const at::Tensor& counts, int64_t rows, at::Device device) {
  const int64_t L = experts_, sources = counts.numel() / L;
  const at::Tensor host = counts.contiguous();
  const int64_t* count = host.const_data_ptr<int64_t>();
  std::vector<int64_t> start(sources * L + 1, 0);  // first received row of (source, expert)
  for (int64_t i = 0; i < sources * L; ++i) start[i + 1] = start[i] + count[i];
  TORCH_CHECK(start.back() == rows, "the counts add up to ", start.back(), " rows, but there are ", rows);

  const at::Tensor index = at::empty({rows}, at::TensorOptions(at::kLong));
  int64_t* next = index.data_ptr<int64_t>();
  int64_t sorted = 0;
  for (int64_t e = 0; e < L; ++e) {
    for (int64_t p = 0; p < sources; ++p) {
      for (int64_t row = start[p * L + e]; row < start[p * L + e + 1]; ++row) next[sorted++] = row;
    }
    ends_.push_back(sorted);
  }
  // With one source or one expert the two orders are the same.
  if (sources > 1 && L > 1) index_ = ToDevice(index, device);
  if (device.is_cuda()) device_ends_ = ToDevice(at::tensor(ends_, at::kInt), device);
}

at::Tensor ExpertRows::Sort(const at::Tensor& received) const {
  if (!index_.defined()) return received;
#ifdef PLANWRIGHT_CUDA
  if (received.dim() == 2 && HasAlignedRows(received)) return GatherRows(received, index_);
#endif
  return received.index_select(0, index_);
}

at::Tensor ExpertRows::Unsort(const at::Tensor& by_expert) const {
  if (!index_.defined()) return by_expert;
#ifdef PLANWRIGHT_CUDA
  if (by_expert.dim() == 2 && HasAlignedRows(by_expert)) return ScatterRows(by_expert, index_);
#endif
  return at::empty_like(by_expert).index_copy_(0, index_, by_expert);
}

at::Tensor ExpertRows::Product(const at::Tensor& x, const at::Tensor& matrices) const {
#ifdef PLANWRIGHT_CUDA
  if (x.is_cuda()) {
    if (MultipliesOnHopper(x, matrices)) return GroupedProduct(x, matrices, device_ends_);
    if (LibTorchTakes(x) && LibTorchTakesMatrices(matrices)) return at::_grouped_mm(x, matrices, device_ends_);
    if (ends_.empty()) return GroupedProduct(x, matrices, device_ends_);
  }
#endif
  // One product for each expert, whose rows the host knows.
  const at::Tensor out = at::empty({x.size(0), matrices.size(2)}, x.options());
  for (int64_t e = 0; e < experts_; ++e) {
    if (length(e) == 0) continue;
    at::Tensor part = out.narrow(0, first(e), length(e));
    at::mm_out(part, x.narrow(0, first(e), length(e)), matrices[e]);
  }
  return out;
}

void ExpertRows::AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b) const {
#ifdef PLANWRIGHT_CUDA
  // Tensor cores take all experts at once. Without them a product for each is faster, if the host knows their rows.
  if (ends_.empty() || AddsOuterProductsOnTensorCores(sums, a, b))
    return AddGroupedOuterProducts(sums, a, b, device_ends_);
#endif
  for (int64_t e = 0; e < experts_; ++e) {
    if (length(e) == 0) continue;
    AddProduct(sums[e], a.narrow(0, first(e), length(e)).t(), b.narrow(0, first(e), length(e)));
  }
}

}  // namespace planwright::executor::ops
