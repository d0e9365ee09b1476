// The rows of experts on a GPU, with the products of all experts at once.
#pragma once

#include "executor/ops/expert_rows.h"

namespace planwright::executor::ops {

// With several source ranks the counts must be on the host. With one (ep 1) the rows are in order already, and the
// counts may stay on the device: then the host never learns how many rows each expert has, and never waits for it.
//
// Hopper's kernels take the rows of several source ranks as they came: an expert's rows are a run in several parts.
// Then nothing is sorted, and "by expert" below means the order of arrival.
class ExpertRowsOnGpu final : public ExpertRows {
 public:
  // counts: i64 [P,L] or [L], of received [X,H]; up [L,ffn,H], the matrices of the first product. c10::Error if they do
  // not add up to X; if the counts are on the device, that stops the device later.
  ExpertRowsOnGpu(const at::Tensor& counts, const at::Tensor& up, const at::Tensor& received);

  at::Tensor Sort(const at::Tensor& received) const override;
  at::Tensor Unsort(const at::Tensor& by_expert) const override;

  // In every dtype. What neither our kernels nor LibTorch take is one product for each expert if the host knows their
  // rows, and a slow kernel if it does not. What they do not take as it came is sorted for it.
  at::Tensor Product(const at::Tensor& x, const at::Tensor& matrices) const override;
  void AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, bool writes) const override;

 private:
  at::Tensor SortedProduct(const at::Tensor& x, const at::Tensor& matrices) const;
  void AddSortedOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, bool writes) const;
  at::Tensor Sorted(const at::Tensor& received) const;
  at::Tensor Unsorted(const at::Tensor& by_expert) const;
  const at::Tensor& sorted_ends() const;  // end of each expert's rows, i32 [L], on the device

  at::Tensor parts_;  // ends of the rows as they came, i32 [P,L], on the device; undefined where they are sorted
  mutable at::Tensor sorted_ends_;
};

}  // namespace planwright::executor::ops
