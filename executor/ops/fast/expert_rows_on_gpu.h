// The rows of experts on a GPU, with the products of all experts at once.
#pragma once

#include "executor/ops/expert_rows.h"

namespace planwright::executor::ops {

// With several source ranks the counts must be on the host. With one (ep 1) the rows are in order already, and the
// counts may stay on the device: then the host never learns how many rows each expert has, and never waits for it.
class ExpertRowsOnGpu final : public ExpertRows {
 public:
  // counts: i64 [P,L] or [L]. c10::Error if they do not add up to `rows`; if the counts are on the device, that stops
  // the device later.
  ExpertRowsOnGpu(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device);

  at::Tensor Sort(const at::Tensor& received) const override;
  at::Tensor Unsort(const at::Tensor& by_expert) const override;

  // In every dtype. What neither our kernels nor LibTorch take is one product for each expert if the host knows their
  // rows, and a slow kernel if it does not.
  at::Tensor Product(const at::Tensor& x, const at::Tensor& matrices) const override;
  void AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, bool writes) const override;

 private:
  at::Tensor device_ends_;  // end of each expert's rows, i32 [L]
};

}  // namespace planwright::executor::ops
