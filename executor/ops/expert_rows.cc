#include "executor/ops/expert_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include <numeric>

#include "executor/base/tensors.h"
#include "executor/ops/tensor_math.h"

namespace planwright::executor::ops {

ExpertRows::ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device)
    : device_(device), experts_(local_experts), ends_(static_cast<size_t>(local_experts)) {
  TORCH_CHECK(counts.numel() % experts_ == 0, "counts of shape ", counts.sizes(), " for ", experts_, " local experts");
  const at::Tensor host = counts.cpu().contiguous();
  const int64_t* count = host.const_data_ptr<int64_t>();
  int64_t all = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    TORCH_CHECK(count[i] >= 0, "a count of ", count[i], " rows");
    arrival_ends_.push_back(all += count[i]);
    ends_[static_cast<size_t>(i % experts_)] += count[i];
  }
  TORCH_CHECK(all == rows, "the counts add up to ", all, " rows, but there are ", rows);
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
}

const at::Tensor& ExpertRows::index() const {
  if (index_.defined()) return index_;
  const at::Tensor index = at::empty({ends_.empty() ? 0 : ends_.back()}, at::TensorOptions(at::kLong));
  int64_t* next = index.data_ptr<int64_t>();
  for (size_t expert = 0; expert < ends_.size(); ++expert) {
    for (size_t i = expert; i < arrival_ends_.size(); i += ends_.size()) {
      const int64_t begin = i == 0 ? 0 : arrival_ends_[i - 1], end = arrival_ends_[i];
      std::iota(next, next + (end - begin), begin);
      next += end - begin;
    }
  }
  return index_ = ToDevice(index, device_);
}

at::Tensor ExpertRows::Sort(const at::Tensor& received) const {
  return in_order() ? received : received.index_select(0, index());
}

at::Tensor ExpertRows::Unsort(const at::Tensor& by_expert) const {
  return in_order() ? by_expert : at::empty_like(by_expert).index_copy_(0, index(), by_expert);
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
