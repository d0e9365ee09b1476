// Sorts the rows that an expert rank received by its experts, and multiplies them with the experts' matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

// Rows arrive ordered by source rank, local expert, token. The products need them by local expert, source rank, token
// (docs/model/mixture_of_experts.md#order-of-rows). Here the host knows how many rows each expert has, and there is one
// product for each. fast/expert_rows_on_gpu.h has products of all experts at once.
class ExpertRows {
 public:
  // counts: i64 [P,L] or [L]; from a GPU they are copied, and the host waits. c10::Error if they do not add up to
  // `rows`.
  ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device);
  virtual ~ExpertRows() = default;

  virtual at::Tensor Sort(const at::Tensor& received) const;     // from the order of arrival to that of experts
  virtual at::Tensor Unsort(const at::Tensor& by_expert) const;  // and back

  // Rows of an expert. Only where the host knows them, and these are by expert.
  int64_t length(int64_t expert) const { return ends_[expert] - first(expert); }

  // x [X,i] by expert, matrices [L,i,o] -> [X,o] by expert: the rows of expert e times matrices[e].
  virtual at::Tensor Product(const at::Tensor& x, const at::Tensor& matrices) const;
  // sums [L,i,o], a [X,i], b [X,o]: sums[e] += a_e^T b_e over the rows of expert e; or sums[e] = a_e^T b_e, if this
  // `writes`, where what was there is not read.
  virtual void AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, bool writes) const;

 protected:
  // Of one source rank, so that the rows are in order already; the host learns nothing about them.
  static ExpertRows InOrder(int64_t local_experts, at::Device device) { return {local_experts, device}; }
  ExpertRows(const ExpertRows&) = default;

  // Ends of each expert's rows; empty if only the device knows them.
  const std::vector<int64_t>& ends() const { return ends_; }
  // Where the rows of each expert from each source rank end, in the order of arrival [P,L]; empty as above.
  const std::vector<int64_t>& arrival_ends() const { return arrival_ends_; }
  // Whether the two orders are the same: there is one source rank or one expert.
  bool in_order() const { return ends_.size() < 2 || arrival_ends_.size() == ends_.size(); }
  // i64 [X], on the device: the received row of each sorted row. Made when it is first asked for.
  const at::Tensor& index() const;

  const at::Device device_;  // of the rows

 private:
  ExpertRows(int64_t local_experts, at::Device device) : device_(device), experts_(local_experts) {}
  int64_t first(int64_t expert) const { return expert == 0 ? 0 : ends_[expert - 1]; }

  const int64_t experts_;
  std::vector<int64_t> ends_, arrival_ends_;
  mutable at::Tensor index_;
};

}  // namespace planwright::executor::ops
