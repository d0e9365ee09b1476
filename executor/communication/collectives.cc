#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <numeric>

#include "executor/base/zigzag.h"
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

// A message without rows is not sent: both ends know the counts.
void AddMessage(Communicator& group, int peer, bool send, const at::Tensor& rows, std::vector<Message>& messages) {
  if (rows.numel() > 0) messages.push_back({&group, peer, send, rows});
}

// The backends move and reduce whole tensors: the parts of all members must lie one after another. These functions
// bring the parts of `dim` of [...] to the front, [members, ...], and back.

at::Tensor ConsecutiveParts(const at::Tensor& x, int64_t dim, int64_t members) {
  TORCH_CHECK(x.size(dim) % members == 0, "dim ", dim, " of ", x.sizes(), " cannot be cut in ", members,
              " equal parts");
  return x.unflatten(dim, {members, x.size(dim) / members}).movedim(dim, 0);
}
at::Tensor JoinConsecutive(const at::Tensor& parts, int64_t dim) { return parts.movedim(0, dim).flatten(dim, dim + 1); }

// Members have the chunks of the first half in order, and those of the second half in reverse order.
at::Tensor ZigzagParts(const at::Tensor& x, int64_t dim, int64_t members) {
  const int64_t half = members * ZigzagChunk(x, dim, members);
  return at::cat({ConsecutiveParts(x.narrow(dim, 0, half), dim, members),
                  ConsecutiveParts(x.narrow(dim, half, half), dim, members).flip(0)},
                 dim + 1);
}
at::Tensor JoinZigzag(const at::Tensor& parts, int64_t dim) {
  const int64_t chunk = parts.size(dim + 1) / 2;
  return at::cat({JoinConsecutive(parts.narrow(dim + 1, 0, chunk), dim),
                  JoinConsecutive(parts.narrow(dim + 1, chunk, chunk).flip(0), dim)},
                 dim);
}

at::Tensor PartsOf(const at::Tensor& x, int64_t dim, int64_t members, Cut cut) {
  return (cut == Cut::kZigzag ? ZigzagParts : ConsecutiveParts)(x, dim, members).contiguous();
}
at::Tensor JoinParts(const at::Tensor& parts, int64_t dim, Cut cut) {
  return (cut == Cut::kZigzag ? JoinZigzag : JoinConsecutive)(parts, dim).contiguous();
}

// Each segment is cut by itself: a part is the parts of all segments, joined.
at::Tensor SegmentParts(const at::Tensor& x, int64_t dim, int64_t members, const std::vector<int64_t>& segments) {
  TORCH_CHECK(Sum(segments) == x.size(dim), "segments add up to ", Sum(segments), ", but dim ", dim, " of ", x.sizes(),
              " is another size");
  std::vector<at::Tensor> parts;
  int64_t at = 0;
  for (int64_t segment : segments) {
    parts.push_back(ConsecutiveParts(x.narrow(dim, at, segment), dim, members));
    at += segment;
  }
  return at::cat(parts, dim + 1);
}
at::Tensor JoinSegments(const at::Tensor& parts, int64_t dim, const std::vector<int64_t>& segments) {
  const int64_t members = parts.size(0);
  TORCH_CHECK(Sum(segments) == members * parts.size(dim + 1), "segments add up to ", Sum(segments),
              ", but the parts have ", members, " times ", parts.size(dim + 1));
  std::vector<at::Tensor> whole;
  int64_t at = 0;
  for (int64_t segment : segments) {
    whole.push_back(JoinConsecutive(parts.narrow(dim + 1, at, segment / members), dim));
    at += segment / members;
  }
  return at::cat(whole, dim);
}

}  // namespace

at::Tensor AllReduce(Communicator& group, const at::Tensor& value, Reduce reduce) {
  // A copy: the backend works in place, and the input may be read again.
  at::Tensor result = value.clone(at::MemoryFormat::Contiguous);
  if (result.numel() > 0) group.AllReduce(result, reduce);
  return result;
}

at::Tensor AllGather(Communicator& group, const at::Tensor& value, int64_t dim, Cut cut) {
  at::Tensor gathered = at::empty(Prepend(group.size(), value.sizes()), value.options());
  if (value.numel() > 0) group.AllGather(value.contiguous(), gathered);
  return JoinParts(gathered, dim, cut);
}

at::Tensor ReduceScatter(Communicator& group, const at::Tensor& value, int64_t dim, Cut cut) {
  const at::Tensor parts = PartsOf(value, dim, group.size(), cut);
  at::Tensor result = at::empty(parts.sizes().slice(1), value.options());
  if (result.numel() > 0) group.ReduceScatter(parts, result);
  return result;
}

at::Tensor Reshard(Communicator& group, const at::Tensor& value, const ReshardDims& dims) {
  TORCH_CHECK(dims.zigzag_dim == dims.from_dim || dims.zigzag_dim == dims.to_dim, "zigzag_dim ", dims.zigzag_dim,
              " is neither from_dim ", dims.from_dim, " nor to_dim ", dims.to_dim);
  const bool zigzag_becomes_whole = dims.zigzag_dim == dims.from_dim;
  const at::Tensor parts = (zigzag_becomes_whole ? SegmentParts(value, dims.to_dim, group.size(), dims.segments)
                                                 : ZigzagParts(value, dims.to_dim, group.size()))
                               .contiguous();
  at::Tensor received = at::empty_like(parts);
  const std::vector<int64_t> one(group.size(), 1);  // member p gets part p
  if (parts.numel() > 0) group.AllToAllRows(parts, received, one, one);
  return zigzag_becomes_whole ? JoinZigzag(received, dims.from_dim)
                              : JoinSegments(received, dims.from_dim, dims.segments);
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

at::Tensor AllGatherV(Communicator& group, const at::Tensor& rows, const at::Tensor& counts) {
  const std::vector<int64_t> of = RowsPerMember(counts, group.size());
  TORCH_CHECK(of[group.index()] == rows.size(0), "the counts say ", of[group.index()],
              " rows of this member, but it has ", rows.size(0));
  const at::Tensor mine = rows.contiguous();
  at::Tensor joined = at::empty(Prepend(Sum(of), rows.sizes().slice(1)), rows.options());
  std::vector<Message> messages;
  int64_t first = 0;
  for (int p = 0; p < group.size(); ++p) {
    const at::Tensor part = joined.narrow(0, first, of[p]);
    first += of[p];
    if (p == group.index()) {
      part.copy_(mine);
      continue;
    }
    AddMessage(group, p, true, mine, messages);
    AddMessage(group, p, false, part, messages);
  }
  group.Exchange(messages);
  return joined;
}

at::Tensor ReduceScatterV(Communicator& group, const at::Tensor& value, const at::Tensor& counts) {
  const std::vector<int64_t> of = RowsPerMember(counts, group.size());
  TORCH_CHECK(Sum(of) == value.size(0), "the counts add up to ", Sum(of), " rows, but there are ", value.size(0));
  const at::Tensor parts = value.contiguous();
  const int64_t mine = of[group.index()];
  at::Tensor terms = at::empty(Prepend(group.size() * mine, value.sizes().slice(1)), value.options());
  std::vector<Message> messages;
  int64_t first = 0;
  for (int p = 0; p < group.size(); ++p) {
    const at::Tensor part = parts.narrow(0, first, of[p]), term = terms.narrow(0, p * mine, mine);
    first += of[p];
    if (p == group.index()) {
      term.copy_(part);
      continue;
    }
    AddMessage(group, p, true, part, messages);
    AddMessage(group, p, false, term, messages);
  }
  group.Exchange(messages);
  const bool narrow = value.scalar_type() == at::kBFloat16;
  at::Tensor sum = terms.narrow(0, 0, mine)
                       .to(narrow ? at::kFloat : value.scalar_type(), /*non_blocking=*/false,
                           /*copy=*/true);
  for (int p = 1; p < group.size(); ++p) sum.add_(terms.narrow(0, p * mine, mine));
  return sum.to(value.scalar_type());
}

}  // namespace planwright::executor
