// A group of ranks that can move and add tensors together. The one interface through which anything leaves a rank; only
// communication instructions hold one. Two backends: Gloo (host tensors) and NCCL (device tensors).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor {

enum class Reduce { kSum, kMax };

class Communicator;

// One point-to-point transfer of an exchange. `peer` is an index in the communicator's group. A received tensor is
// written in place. Between two ranks, messages of one communicator match in the order they are listed.
struct Message {
  Communicator* communicator = nullptr;
  int peer = 0;
  bool send = false;
  at::Tensor tensor;  // contiguous, not empty
};

// Every tensor is contiguous; every member calls the same operations in the same order with shapes that agree. Calls
// return when the outputs may be used (NCCL: in the order of the current stream). A lost peer or a time-out is a C++
// exception.
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
  // output = the members' inputs one after another: size() times the elements.
  virtual void AllGather(const at::Tensor& input, at::Tensor& output) = 0;
  // output = this member's part, the index()-th of size() equal ones, of the sum of the inputs.
  virtual void ReduceScatter(const at::Tensor& input, at::Tensor& output) = 0;
  // Rows (dim 0) of input, send[p] of them to member p in order; output gets receive[p] from member p. Counts on the
  // host.
  virtual void AllToAllRows(const at::Tensor& input, at::Tensor& output, const std::vector<int64_t>& send,
                            const std::vector<int64_t>& receive) = 0;
  // In place, from member `root`.
  virtual void Broadcast(at::Tensor& value, int root) = 0;
  // All messages progress together. They may belong to several communicators of this backend.
  virtual void Exchange(const std::vector<Message>& messages) = 0;

 private:
  std::vector<int> ranks_;
  int index_;
};

}  // namespace planwright::executor
