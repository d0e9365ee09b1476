#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <numeric>

#include "executor/communication/communicator.h"

namespace planwright::executor {
namespace {

// The row counts of each member, added up. The counts must be on the host already, or the host waits for them here.
std::vector<int64_t> RowsPerMember(const at::Tensor& counts, int members) {
  const at::Tensor host = counts.cpu().contiguous();
  TORCH_CHECK(host.scalar_type() == at::kLong && host.numel() % members == 0, "row counts of shape ", host.sizes(),
              " cannot be divided among ", members, " members");
  const int64_t* data = host.const_data_ptr<int64_t>();
  const int64_t counts_each = host.numel() / members;
  std::vector<int64_t> rows(members);
  for (int p = 0; p < members; ++p)
    rows[p] = std::accumulate(data + p * counts_each, data + (p + 1) * counts_each, int64_t{0});
  return rows;
}

int64_t Sum(const std::vector<int64_t>& values) { return std::accumulate(values.begin(), values.end(), int64_t{0}); }

// [rows, sizes...]
std::vector<int64_t> Prepend(int64_t rows, at::IntArrayRef sizes) {
  std::vector<int64_t> result = {rows};
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

}  // namespace

at::Tensor AllReduce(Communicator& group, const at::Tensor& value, Reduce reduce) {
  // A copy: the backend works in place, and the input may be read again.
  at::Tensor result = value.clone(at::MemoryFormat::Contiguous);
  if (result.numel() > 0) group.AllReduce(result, reduce);
  return result;
}

at::Tensor AllGather(Communicator& group, const at::Tensor& value, int64_t dim) {
  at::Tensor gathered = at::empty(Prepend(group.size(), value.sizes()), value.options());
  if (value.numel() > 0) group.AllGather(value.contiguous(), gathered);
  // The backend joins whole tensors. For another dim than 0 the members' parts are interleaved here.
  return gathered.movedim(0, dim).flatten(dim, dim + 1).contiguous();
}

at::Tensor ReduceScatter(Communicator& group, const at::Tensor& value, int64_t dim) {
  TORCH_CHECK(value.size(dim) % group.size() == 0, "dim ", dim, " of ", value.sizes(), " cannot be cut in ",
              group.size(), " equal parts");
  // Parts along another dim than 0 are not contiguous; the backend needs them one after another.
  const at::Tensor parts =
      value.unflatten(dim, {group.size(), value.size(dim) / group.size()}).movedim(dim, 0).contiguous();
  at::Tensor result = at::empty(parts.sizes().slice(1), value.options());
  if (result.numel() > 0) group.ReduceScatter(parts, result);
  return result;
}

at::Tensor AllToAll(Communicator& group, const at::Tensor& counts) {
  TORCH_CHECK(counts.numel() % group.size() == 0, counts.numel(), " counts cannot be divided among ", group.size(),
              " members");
  const at::Tensor rows = counts.contiguous().view({group.size(), -1});
  at::Tensor result = at::empty_like(rows);
  // No count is sent for the counts themselves: one row for each member.
  const std::vector<int64_t> one(group.size(), 1);
  if (rows.numel() > 0) group.AllToAllRows(rows, result, one, one);
  return result;
}

at::Tensor AllToAllV(Communicator& group, const at::Tensor& rows, const at::Tensor& send_counts,
                     const at::Tensor& receive_counts) {
  const std::vector<int64_t> send = RowsPerMember(send_counts, group.size());
  const std::vector<int64_t> receive = RowsPerMember(receive_counts, group.size());
  TORCH_CHECK(Sum(send) == rows.size(0), "the counts to send add up to ", Sum(send), " rows, but there are ",
              rows.size(0));
  at::Tensor result = at::empty(Prepend(Sum(receive), rows.sizes().slice(1)), rows.options());
  // Called even with no rows: all members must take part.
  group.AllToAllRows(rows.contiguous(), result, send, receive);
  return result;
}

}  // namespace planwright::executor
