// Communicator: a group of ranks on one stream that move and reduce tensors together. All communication of training
// goes through this interface, and only actions of communication instructions hold it. Two backends: Gloo (host
// tensors) and NCCL (device tensors).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor {

enum class Reduce { kSum, kMax };

class Communicator;

// One point-to-point transfer of an exchange. `peer` is an index in Communicator::ranks. A received tensor is written
// in place. Between two ranks, the messages of one communicator are matched in the order in which they are listed.
struct Message {
  Communicator* communicator = nullptr;
  int peer = 0;
  bool send = false;
  at::Tensor tensor;  // contiguous, not empty
};

// All tensors must be contiguous. Every member must call the same operations in the same order, with shapes that agree.
// With Gloo a call returns when the outputs may be used; with NCCL it returns after the launch, and the outputs may be
// used in the order of the current stream. Calls throw CommunicationError (failure.h) if a peer is lost or time runs
// out.
class Communicator {
 public:
  Communicator(std::vector<int> ranks, int index) : ranks_(std::move(ranks)), index_(index) {}
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const std::vector<int>& ranks() const { return ranks_; }  // world ranks, in group order
  int size() const { return static_cast<int>(ranks_.size()); }
  int index() const { return index_; }  // of this rank in ranks()

  // In place.
  virtual void AllReduce(at::Tensor& value, Reduce reduce) = 0;
  // output = the inputs of all members, one after another: size() times as many elements.
  virtual void AllGather(const at::Tensor& input, at::Tensor& output) = 0;
  // The inputs are summed over the members and the sum is cut in size() equal parts; output = part index().
  virtual void ReduceScatter(const at::Tensor& input, at::Tensor& output) = 0;
  // The rows (dim 0) of `input` go to the members in order, send[p] of them to member p. `output` gets the rows of the
  // members in order, receive[p] of them from member p.
  virtual void AllToAllRows(const at::Tensor& input, at::Tensor& output, const std::vector<int64_t>& send,
                            const std::vector<int64_t>& receive) = 0;
  // In place, from member `root`.
  virtual void Broadcast(at::Tensor& value, int root) = 0;
  // All messages progress together, so their order cannot make ranks wait for each other. They may belong to several
  // communicators of this backend.
  virtual void Exchange(const std::vector<Message>& messages) = 0;

 private:
  std::vector<int> ranks_;
  int index_;
};

// --- collectives on tensors of any shape and along any dim, made from the flat ones above. Each returns a new tensor
// and leaves its input as it is.

at::Tensor AllReduce(Communicator& group, const at::Tensor& value, Reduce reduce);

// How a dim is cut over a group: in consecutive parts of equal length, or zigzag (executor/base/zigzag.h).
enum class Cut { kConsecutive, kZigzag };

// The members' tensors, all of one shape, joined along `dim`. The dim is in order in the result.
at::Tensor AllGather(Communicator& group, const at::Tensor& value, int64_t dim, Cut cut = Cut::kConsecutive);

// The sum over the members, cut along `dim`: this member's part. c10::Error if the dim cannot be cut.
at::Tensor ReduceScatter(Communicator& group, const at::Tensor& value, int64_t dim, Cut cut = Cut::kConsecutive);

// Cuts another dim: `from_dim`, of which each member has its part, becomes whole, and `to_dim` becomes cut. One of the
// two is `zigzag_dim`. The other consists, where it is whole, of `segments` of these sizes, each of which is cut in
// consecutive parts. One all-to-all. c10::Error if a dim cannot be cut so.
struct ReshardDims {
  int64_t from_dim = 0, to_dim = 0, zigzag_dim = 0;
  std::vector<int64_t> segments;
};
at::Tensor Reshard(Communicator& group, const at::Tensor& value, const ReshardDims& dims);

// `counts`, i64 with size() * n elements, as rows of n: row p goes to member p. Returns [size(), n], row p from member
// p.
at::Tensor AllToAll(Communicator& group, const at::Tensor& counts);

// Rows (dim 0) to and from each member. The counts are i64 [size(), ...]; a member's counts are added up to its number
// of rows (one expert rank has several experts).
at::Tensor AllToAllV(Communicator& group, const at::Tensor& rows, const at::Tensor& send_counts,
                     const at::Tensor& receive_counts);

// The two below: members may have different numbers of rows (dim 0), also none. `counts` as in AllToAllV: those of all
// members, the same on every member. They are made from sends and receives: the backends' own kinds need equal parts.
// A member then sends no row that nobody needs, and members without rows send nothing.

// The members' rows, joined in group order.
at::Tensor AllGatherV(Communicator& group, const at::Tensor& rows, const at::Tensor& counts);

// `value` has the rows of all members in group order. Returns the sum over the members of this member's rows. Terms are
// added in group order, wherever the rows belong: no run differs in a rounding. bf16 is added in fp32 and rounded once.
at::Tensor ReduceScatterV(Communicator& group, const at::Tensor& value, const at::Tensor& counts);

}  // namespace planwright::executor
