// How the rows that an expert rank received are grouped by its experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

// Rows arrive ordered by source rank, local expert, token; products want them by local expert, source rank, token (facts 4.6).
class ExpertRows {
 public:
  // counts [P,L] or [L]; `rows` is how many there must be in all. Reads the counts on the host.
  ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device);

  at::Tensor Sort(const at::Tensor& received) const;    // as received -> by expert
  at::Tensor Unsort(const at::Tensor& by_expert) const;  // back

  int64_t experts() const { return static_cast<int64_t>(ends_.size()); }
  int64_t first(int64_t expert) const { return expert == 0 ? 0 : ends_[expert - 1]; }
  int64_t length(int64_t expert) const { return ends_[expert] - first(expert); }

  // out rows of expert e = x rows of expert e times matrices[e], [i,o]; x and the result are by expert.
  at::Tensor Product(const at::Tensor& x, const at::Tensor& matrices) const;
  // sums[e] += a_e^T b_e over the rows of expert e.
  void AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b) const;

 private:
  std::vector<int64_t> ends_;  // by expert
  at::Tensor index_;           // received row of each sorted row; undefined when the order is the same
};

}  // namespace planwright::executor::ops
