#include "executor/ops/expert_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include "executor/base/tensors.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

ExpertRows::ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device)
    : experts_(local_experts) {
  TORCH_CHECK(counts.numel() % experts_ == 0, "counts of shape ", counts.sizes(), " for ", experts_, " local experts");
  const int64_t L = experts_, sources = counts.numel() / L;
  const at::Tensor host = counts.cpu().contiguous();
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
}

at::Tensor ExpertRows::Sort(const at::Tensor& received) const {
  return index_.defined() ? received.index_select(0, index_) : received;
}

at::Tensor ExpertRows::Unsort(const at::Tensor& by_expert) const {
  return index_.defined() ? at::empty_like(by_expert).index_copy_(0, index_, by_expert) : by_expert;
}

at::Tensor ExpertRows::Product(const at::Tensor& x, const at::Tensor& matrices) const {
  const at::Tensor out = at::empty({x.size(0), matrices.size(2)}, x.options());
  for (int64_t e = 0; e < experts_; ++e) {
    if (length(e) == 0) continue;
    at::Tensor part = out.narrow(0, first(e), length(e));
    at::mm_out(part, x.narrow(0, first(e), length(e)), matrices[e]);
  }
  return out;
}

void ExpertRows::AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, bool writes) const {
  if (writes) sums.zero_();
  for (int64_t e = 0; e < experts_; ++e) {
    if (length(e) == 0) continue;
    AddProduct(sums[e], a.narrow(0, first(e), length(e)).t(), b.narrow(0, first(e), length(e)));
  }
}

}  // namespace planwright::executor::ops
