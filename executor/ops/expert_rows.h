// Sorts the rows that an expert rank received by its experts, and multiplies them with the experts' matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

// Rows arrive ordered by source rank, local expert, token. The products need them by local expert, source rank, token
// (docs/model/mixture_of_experts.md#order-of-rows). With several source ranks the counts must be on the host. With one
// (ep 1) the rows are in order already, and the counts may stay on the device: then the host never learns how many rows
// each expert has, and never waits for it.
class ExpertRows {
 public:
  // counts: i64 [P,L] or [L]. c10::Error if they do not add up to `rows`; if the counts are on the device, that stops
  // the device later.
  ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device);

  at::Tensor Sort(const at::Tensor& received) const;     // from the order of arrival to that of experts
  at::Tensor Unsort(const at::Tensor& by_expert) const;  // and back

  // Rows of an expert. Only for counts that are on the host.
  int64_t length(int64_t expert) const { return ends_[expert] - first(expert); }

  // x [X,i] by expert, matrices [L,i,o] -> [X,o] by expert: the rows of expert e times matrices[e].
  at::Tensor Product(const at::Tensor& x, const at::Tensor& matrices) const;
  // sums [L,i,o], a [X,i], b [X,o]: sums[e] += a_e^T b_e over the rows of expert e.
  void AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b) const;

 private:
  void OrderOnHost(const at::Tensor& counts, int64_t rows, at::Device device);
  int64_t first(int64_t expert) const { return expert == 0 ? 0 : ends_[expert - 1]; }

  const int64_t experts_;
  std::vector<int64_t> ends_;  // end of each expert's rows; empty if only the device knows them
  at::Tensor device_ends_;     // the same, i32 [L] on the GPU; undefined on a CPU
  at::Tensor index_;           // i64 [X]: the received row of each sorted row; undefined if the order is the same
};

}  // namespace planwright::executor::ops
