#include "executor/communication/collectives.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <numeric>

namespace planwright::executor {
namespace {

std::vector<int64_t> RowsPerMember(const at::Tensor& counts, int members) {
  const at::Tensor host = counts.cpu().contiguous();
  TORCH_CHECK(host.scalar_type() == at::kLong && host.numel() % members == 0, "row counts of shape ", host.sizes(),
              " for ", members, " members");
  const int64_t* data = host.const_data_ptr<int64_t>();
  const int64_t each = host.numel() / members;
  std::vector<int64_t> rows(members);
  for (int p = 0; p < members; ++p) rows[p] = std::accumulate(data + p * each, data + (p + 1) * each, int64_t{0});
  return rows;
}

int64_t Sum(const std::vector<int64_t>& values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); }

std::vector<int64_t> WithFirst(int64_t first, at::IntArrayRef sizes) {
  std::vector<int64_t> result = {first};
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

}  // namespace

at::Tensor AllReduce(Communicator& group, const at::Tensor& value, Reduce reduce) {
  at::Tensor result = value.clone(at::MemoryFormat::Contiguous);
  if (result.numel() > 0) group.AllReduce(result, reduce);
  return result;
}

at::Tensor AllGather(Communicator& group, const at::Tensor& value, int64_t dim) {
  at::Tensor gathered = at::empty(WithFirst(group.size(), value.sizes()), value.options());
  if (value.numel() > 0) group.AllGather(value.contiguous(), gathered);
  return gathered.movedim(0, dim).flatten(dim, dim + 1).contiguous();
}

at::Tensor ReduceScatter(Communicator& group, const at::Tensor& value, int64_t dim) {
  TORCH_CHECK(value.size(dim) % group.size() == 0, "dim ", dim, " of ", value.sizes(), " cannot be cut ", group.size(),
              " ways");
  const at::Tensor parts =
      value.unflatten(dim, {group.size(), value.size(dim) / group.size()}).movedim(dim, 0).contiguous();
  at::Tensor result = at::empty(parts.sizes().slice(1), value.options());
  if (result.numel() > 0) group.ReduceScatter(parts, result);
  return result;
}

at::Tensor AllToAll(Communicator& group, const at::Tensor& counts) {
  TORCH_CHECK(counts.numel() % group.size() == 0, counts.numel(), " counts for ", group.size(), " members");
  const at::Tensor rows = counts.contiguous().view({group.size(), -1});
  at::Tensor result = at::empty_like(rows);
  const std::vector<int64_t> one(group.size(), 1);
  if (rows.numel() > 0) group.AllToAllRows(rows, result, one, one);
  return result;
}

at::Tensor AllToAllV(Communicator& group, const at::Tensor& rows, const at::Tensor& send_counts,
                     const at::Tensor& receive_counts) {
  const std::vector<int64_t> send = RowsPerMember(send_counts, group.size());
  const std::vector<int64_t> receive = RowsPerMember(receive_counts, group.size());
  TORCH_CHECK(Sum(send) == rows.size(0), "row counts add up to ", Sum(send), " for ", rows.size(0), " rows");
  at::Tensor result = at::empty(WithFirst(Sum(receive), rows.sizes().slice(1)), rows.options());
  group.AllToAllRows(rows.contiguous(), result, send, receive);
  return result;
}

}  // namespace planwright::executor
