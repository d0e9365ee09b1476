// How the rows that an expert rank received are grouped by its experts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

// Rows arrive ordered by source rank, local expert, token; products want them by local expert, source rank, token
// (facts 4.6). Counts of one source may be on the device: its rows have their order already, and how many each expert
// has stays there. Counts of several sources are on the host.
class ExpertRows {
 public:
  // counts [P,L] or [L]; `rows` is how many there must be in all.
  ExpertRows(const at::Tensor& counts, int64_t local_experts, int64_t rows, at::Device device);

  at::Tensor Sort(const at::Tensor& received) const;     // as received -> by expert
  at::Tensor Unsort(const at::Tensor& by_expert) const;  // back

  // Of counts that are on the host.
  int64_t length(int64_t expert) const { return ends_[expert] - first(expert); }

  // out rows of expert e = x rows of expert e times matrices[e], [i,o]; x and the result are by expert.
  at::Tensor Product(const at::Tensor& x, const at::Tensor& matrices) const;
  // sums[e] += a_e^T b_e over the rows of expert e.
  void AddOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b) const;

 private:
  void OrderOnHost(const at::Tensor& counts, int64_t rows, at::Device device);
  int64_t first(int64_t expert) const { return expert == 0 ? 0 : ends_[expert - 1]; }

  const int64_t experts_;
  std::vector<int64_t> ends_;  // by expert; empty where the device alone knows them
  at::Tensor device_ends_;     // [experts] int32; undefined on a CPU
  at::Tensor index_;           // received row of each sorted row; undefined when the order is the same
};

}  // namespace planwright::executor::ops
