#include <ATen/core/Tensor.h>
#include <gloo/common/error.h>
#include <gloo/common/logging.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "executor/communication/backends.h"
#include "executor/communication/gloo_device.h"

namespace planwright::executor {
namespace {

void CheckTensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_cpu() && tensor.is_contiguous(), "Gloo moves contiguous host tensors, not a tensor of ",
              tensor.sizes(), " on ", tensor.device());
}

// Calls `operation`. Its exception becomes a CommunicationError of the kind that its type says, or of `otherwise` if
// the type says nothing. Gloo uses one type for a lost peer and for a time-out: after `timeout` it is taken for a
// time-out.
template <typename Operation>
auto WithFailureKind(std::chrono::milliseconds timeout, FailureKind otherwise, Operation operation) {
  const auto start = std::chrono::steady_clock::now();
  try {
    return operation();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& error) {
    FailureKind kind = FailureKindOf(error);
    if (kind == FailureKind::kOurs) kind = otherwise;
    // While a group is joined, a peer that does not come is a time-out of the store.
    const bool lost = kind == FailureKind::kPeerLost || kind == FailureKind::kStoreLost;
    if (lost && std::chrono::steady_clock::now() - start >= timeout) kind = FailureKind::kTimeOut;
    throw CommunicationError(kind, MessageOf(error));
  }
}

class GlooCommunicator : public Communicator {
 public:
  GlooCommunicator(std::vector<int> ranks, int index, c10::intrusive_ptr<c10d::ProcessGroupGloo> group,
                   std::chrono::milliseconds timeout)
      : Communicator(std::move(ranks), index), group_(std::move(group)), timeout_(timeout) {}

  void AllReduce(at::Tensor& value, Reduce reduce) override {
    CheckTensor(value);
    if (value.scalar_type() == at::kBFloat16) {  // Gloo cannot add bf16: add in fp32 and round once
      at::Tensor wide = value.to(at::kFloat);
      AllReduce(wide, reduce);
      value.copy_(wide);
      return;
    }
    c10d::AllreduceOptions options;
    options.reduceOp = reduce == Reduce::kSum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    std::vector<at::Tensor> tensors = {value};
    Run([&] { return group_->allreduce(tensors, options); });
  }

  void AllGather(const at::Tensor& input, at::Tensor& output) override {
    CheckTensor(input), CheckTensor(output);
    // The input may be a shard of the output itself (parameters are gathered in place), and Gloo would overwrite it.
    at::Tensor in = Bytes(output.is_alias_of(input) ? input.clone() : input).view(-1), out = Bytes(output).view(-1);
    // A ring of two has the same peer on both sides: see AllToAllRows. In a longer one words and values go apart.
    if (size() == 2) {
      const int64_t own = index(), peer = 1 - own, part = in.numel();
      Exchange({{this, static_cast<int>(peer), false, out.narrow(0, peer * part, part)},
                {this, static_cast<int>(peer), true, in}});
      out.narrow(0, own * part, part).copy_(in);
      return;
    }
    Run([&] { return group_->_allgather_base(out, in); });
  }

  void ReduceScatter(const at::Tensor& input, at::Tensor& output) override {
    CheckTensor(input), CheckTensor(output);
    if (input.scalar_type() == at::kBFloat16) {
      at::Tensor wide = input.to(at::kFloat), part = output.to(at::kFloat);
      ReduceScatter(wide, part);
      output.copy_(part);
      return;
    }
    at::Tensor in = input.view(-1), out = output.view(-1);
    Run([&] { return group_->_reduce_scatter_base(out, in); });
  }

  // LibTorch's alltoall posts each send before the receive from the same peer. A peer that is there already gets the
  // rows at once then, and behind them, on the same connection, the word that its own may come: so they went one way
  // after the other, twice as long. In an exchange the word comes first.
  void AllToAllRows(const at::Tensor& input, at::Tensor& output, const std::vector<int64_t>& send,
                    const std::vector<int64_t>& receive) override {
    CheckTensor(input), CheckTensor(output);
    const std::vector<at::Tensor> sent = input.split_with_sizes(send), received = output.split_with_sizes(receive);
    std::vector<Message> messages;
    const auto add = [&](int peer, bool sends) {
      const at::Tensor& rows = (sends ? sent : received)[static_cast<size_t>(peer)];
      if (rows.numel() > 0) messages.push_back({this, peer, sends, rows});  // both ends know that there are none
    };
    // Each member begins with another peer.
    for (int i = 1; i < size(); ++i) add((index() + i) % size(), true), add((index() + size() - i) % size(), false);
    Exchange(messages);
    received[static_cast<size_t>(index())].copy_(sent[static_cast<size_t>(index())]);
  }

  void Broadcast(at::Tensor& value, int root) override {
    CheckTensor(value);
    c10d::BroadcastOptions options;
    options.rootRank = root;
    std::vector<at::Tensor> tensors = {Bytes(value)};
    Run([&] { return group_->broadcast(tensors, options); });
  }

  void Exchange(const std::vector<Message>& messages) override {
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    // All receives are posted before the first send: a send may block until its receive is posted.
    for (bool send : {false, true}) {
      for (const Message& message : messages) {
        if (message.send != send) continue;
        CheckTensor(message.tensor);
        // A message may belong to another communicator than this one (bridges and stages in one exchange).
        auto* peer_group = static_cast<GlooCommunicator*>(message.communicator)->group_.get();
        std::vector<at::Tensor> tensors = {Bytes(message.tensor)};
        WithFailureKind(timeout_, FailureKind::kOurs, [&] {
          works.push_back(send ? peer_group->send(tensors, message.peer, 0)
                               : peer_group->recv(tensors, message.peer, 0));
        });
      }
    }
    for (const auto& work : works) Run([&] { return work; });
  }

 private:
  // Launches an operation and waits for it: outputs may be used at once, so the walker needs no events on a CPU.
  template <typename Launch>
  void Run(Launch launch) const {
    WithFailureKind(timeout_, FailureKind::kOurs, [&] { launch()->wait(); });
  }

  // Gloo does not know bf16. Tensors that are moved and not added travel as bytes; dim 0, the rows, stays.
  static at::Tensor Bytes(const at::Tensor& tensor) {
    return tensor.scalar_type() == at::kBFloat16 ? tensor.view(at::kByte) : tensor;
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  const std::chrono::milliseconds timeout_;
};

}  // namespace

std::unique_ptr<Communicator> MakeGlooCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index,
                                                   const std::string& address, std::chrono::milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->threads = 1;  // a communicator belongs to one stream, which runs one instruction at a time
  options->devices.push_back(GlooDeviceAt(address));
  const int size = static_cast<int>(ranks.size());
  // While Gloo connects, LibTorch rethrows its errors without their type. Only peers can fail there.
  auto group = WithFailureKind(timeout, FailureKind::kPeerLost, [&] {
    return c10::make_intrusive<c10d::ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>(name, store), index, size,
                                                       options);
  });
  return std::make_unique<GlooCommunicator>(std::move(ranks), index, std::move(group), timeout);
}

std::optional<FailureKind> GlooFailureKind(const std::exception& error) {
  if (dynamic_cast<const gloo::IoException*>(&error) != nullptr) return FailureKind::kPeerLost;
  // A peer broke the protocol, or a call was wrong: both are errors of ours.
  if (dynamic_cast<const gloo::EnforceNotMet*>(&error) != nullptr) return FailureKind::kOurs;
  if (dynamic_cast<const gloo::Exception*>(&error) != nullptr) return FailureKind::kOurs;
  return std::nullopt;
}

}  // namespace planwright::executor
