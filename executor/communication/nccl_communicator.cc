#include <ATen/Context.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "executor/communication/backends.h"

namespace planwright::executor {
namespace {

// ncclRemoteError: a peer is gone, or the way to it. ncclSystemError: a call of the system failed, most often of a
// socket. What else NCCL reports are wrong arguments or wrong use, which are errors of ours.
FailureKind KindOf(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
    case ncclSystemError: return FailureKind::kNetwork;
    case ncclUnhandledCudaError: return FailureKind::kDevice;
    default: return FailureKind::kOurs;
  }
}

CommunicationError ErrorOf(ncclResult_t result, const std::string& what) {
  const char* more = ncclGetLastError(nullptr);  // in words: which peer, which socket
  return {KindOf(result), "NCCL: " + what + ": " + ncclGetErrorString(result) +
                              (more != nullptr && *more != '\0' ? std::string(": ") + more : "")};
}

void Check(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) throw ErrorOf(result, what);
}

// All communicators of this process, so that one call can abort them. A communicator is added when joining has
// succeeded; one that a thread is still joining cannot be aborted.
class CommunicatorRegistry {
 public:
  void Add(ncclComm_t communicator) {
    const std::lock_guard lock(mutex_);
    all_.insert(communicator);
  }

  ncclResult_t AsyncError() {
    const std::lock_guard lock(mutex_);
    for (ncclComm_t communicator : all_) {
      ncclResult_t result = ncclSuccess;
      // ncclInProgress is no error: work is under way.
      if (ncclCommGetAsyncError(communicator, &result) == ncclSuccess && result != ncclSuccess &&
          result != ncclInProgress)
        return result;
    }
    return ncclSuccess;
  }

  void Abort(ncclComm_t communicator) {
    const std::lock_guard lock(mutex_);
    // AbortAll may have been first: a communicator must not be aborted twice.
    if (all_.erase(communicator) > 0) ncclCommAbort(communicator);
  }

  // In one NCCL group. One after another, the first abort would wait for kernels that wait for the second communicator.
  void AbortAll() {
    const std::lock_guard lock(mutex_);
    if (all_.empty()) return;
    ncclGroupStart();
    for (ncclComm_t communicator : all_) ncclCommAbort(communicator);
    ncclGroupEnd();
    all_.clear();
  }

 private:
  std::mutex mutex_;
  std::set<ncclComm_t> all_;
};

// Never destroyed: the watchdog's thread may still use it while the process ends.
CommunicatorRegistry& AllCommunicators() {
  static auto* registry = new CommunicatorRegistry;
  return *registry;
}

ncclDataType_t DataType(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kLong: return ncclInt64;
    case at::kFloat: return ncclFloat32;
    case at::kDouble: return ncclFloat64;
    case at::kBFloat16: return ncclBfloat16;
    default: TORCH_CHECK(false, "NCCL communicators cannot move tensors of type ", tensor.scalar_type());
  }
}

void CheckTensor(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), "NCCL moves contiguous device tensors, not a tensor of ",
              tensor.sizes(), " on ", tensor.device());
}

cudaStream_t Stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

// An NCCL group: calls between construction and Finish progress together. No destructor: if a call throws, the process
// ends, and ending the group would only launch what is incomplete.
class NcclGroup {
 public:
  NcclGroup() { Check(ncclGroupStart(), "group start"); }
  void Finish() { Check(ncclGroupEnd(), "group end"); }
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::vector<int> ranks, int index, ncclComm_t communicator)
      : Communicator(std::move(ranks), index), communicator_(communicator) {}
  ~NcclCommunicator() override { AllCommunicators().Abort(communicator_); }

  void AllReduce(at::Tensor& value, Reduce reduce) override {
    CheckTensor(value);
    Check(ncclAllReduce(value.data_ptr(), value.data_ptr(), value.numel(), DataType(value),
                        reduce == Reduce::kSum ? ncclSum : ncclMax, communicator_, Stream()),
          "all-reduce");
  }

  void AllGather(const at::Tensor& input, at::Tensor& output) override {
    CheckTensor(input), CheckTensor(output);
    Check(ncclAllGather(input.data_ptr(), output.data_ptr(), input.numel(), DataType(input), communicator_, Stream()),
          "all-gather");
  }

  void ReduceScatter(const at::Tensor& input, at::Tensor& output) override {
    CheckTensor(input), CheckTensor(output);
    Check(ncclReduceScatter(input.data_ptr(), output.data_ptr(), output.numel(), DataType(input), ncclSum,
                            communicator_, Stream()),
          "reduce-scatter");
  }

  void AllToAllRows(const at::Tensor& input, at::Tensor& output, const std::vector<int64_t>& send,
                    const std::vector<int64_t>& receive) override {
    CheckTensor(input), CheckTensor(output);
    // NCCL has no all-to-all: sends and receives in one group. Members with 0 rows exchange no message; both ends know.
    int64_t sent = 0, received = 0;
    NcclGroup group;
    for (int peer = 0; peer < size(); ++peer) {
      Send(input.narrow(0, sent, send[peer]), peer);
      Receive(output.narrow(0, received, receive[peer]), peer);
      sent += send[peer], received += receive[peer];
    }
    group.Finish();
  }

  void Broadcast(at::Tensor& value, int root) override {
    CheckTensor(value);
    Check(ncclBroadcast(value.data_ptr(), value.data_ptr(), value.numel(), DataType(value), root, communicator_,
                        Stream()),
          "broadcast");
  }

  void Exchange(const std::vector<Message>& messages) override {
    MeetNewPeers(messages);
    NcclGroup group;
    for (const Message& message : messages) {
      CheckTensor(message.tensor);
      auto* owner = static_cast<NcclCommunicator*>(message.communicator);
      message.send ? owner->Send(message.tensor, message.peer) : owner->Receive(message.tensor, message.peer);
    }
    group.Finish();
  }

 private:
  // NCCL connects two ranks when they first meet, and each says what it needs: to send, to receive, or both. If one
  // rank does both in one group and the other in two, they do not understand each other ("message truncated"). So the
  // first message between two ranks, which is the first for both, goes after one word in each direction.
  static void MeetNewPeers(const std::vector<Message>& messages) {
    std::vector<std::pair<NcclCommunicator*, int>> strangers;
    for (const Message& message : messages) {
      auto* owner = static_cast<NcclCommunicator*>(message.communicator);
      if (owner->met_.insert(message.peer).second) strangers.emplace_back(owner, message.peer);
    }
    if (strangers.empty()) return;
    const at::TensorOptions options = messages[0].tensor.options().dtype(at::kFloat);
    const at::Tensor said = at::zeros({1}, options),
                     heard = at::empty({static_cast<int64_t>(strangers.size())}, options);
    NcclGroup group;
    for (size_t i = 0; i < strangers.size(); ++i) {
      strangers[i].first->Send(said, strangers[i].second);
      strangers[i].first->Receive(heard.narrow(0, static_cast<int64_t>(i), 1), strangers[i].second);
    }
    group.Finish();
  }

  void Send(const at::Tensor& rows, int peer) {
    if (rows.numel() > 0)
      Check(ncclSend(rows.data_ptr(), rows.numel(), DataType(rows), peer, communicator_, Stream()), "send");
  }
  void Receive(const at::Tensor& rows, int peer) {
    if (rows.numel() > 0)
      Check(ncclRecv(rows.data_ptr(), rows.numel(), DataType(rows), peer, communicator_, Stream()), "receive");
  }

  ncclComm_t communicator_;
  std::set<int> met_;  // peers of earlier exchanges
};

}  // namespace

std::unique_ptr<Communicator> MakeNcclCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index) {
  ncclUniqueId id;
  // get() waits until member 0 has set the id.
  if (index == 0) {
    Check(ncclGetUniqueId(&id), "unique id");
    const auto* bytes = reinterpret_cast<const uint8_t*>(&id);
    store->set(name, std::vector<uint8_t>(bytes, bytes + sizeof id));
  } else {
    const std::vector<uint8_t> bytes = store->get(name);
    TORCH_CHECK(bytes.size() == sizeof id, "NCCL: the id of ", name, " has ", bytes.size(), " bytes");
    std::memcpy(&id, bytes.data(), sizeof id);
  }
  ncclComm_t communicator = nullptr;
  Check(ncclCommInitRank(&communicator, static_cast<int>(ranks.size()), id, index), "joining a group");
  AllCommunicators().Add(communicator);
  return std::make_unique<NcclCommunicator>(std::move(ranks), index, communicator);
}

std::optional<CommunicationError> FindNcclFailure() {
  // Any call reports an error of the device. This one does not wait and changes nothing.
  const cudaError_t device = cudaStreamQuery(Stream());
  if (device == cudaErrorNotReady) static_cast<void>(cudaGetLastError());  // recorded as an error: clear it
  if (device != cudaSuccess && device != cudaErrorNotReady) {
    return CommunicationError(FailureKind::kDevice, std::string("CUDA: ") + cudaGetErrorString(device));
  }
  const ncclResult_t result = AllCommunicators().AsyncError();
  if (result != ncclSuccess) return ErrorOf(result, "noticed by NCCL's own thread");
  return std::nullopt;
}

void AbortNccl() { AllCommunicators().AbortAll(); }

void UseCudaDevice(int index, bool deterministic) {
  // Asked by ourselves: c10's question adds a warning about drivers to the message.
  int devices = 0;
  const cudaError_t asked = cudaGetDeviceCount(&devices);
  // Where a host has no driver at all, CUDA says that the driver is too old.
  const std::string reason = asked == cudaErrorInsufficientDriver
                                 ? "NVIDIA's driver is not installed, or is older than CUDA " +
                                       std::to_string(CUDART_VERSION / 1000) + " needs"
                                 : cudaGetErrorString(asked);
  TORCH_CHECK(asked == cudaSuccess, "local rank ", index, " needs GPU ", index,
              ", but CUDA finds no GPU on this host: ", reason,
              "; for CPU ranks launch with --device cpu or cluster.gpu=none");
  TORCH_CHECK(index < devices, "local rank ", index, " needs GPU ", index, ", but this host has ", devices, " GPUs");
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
  // TF32 keeps only ten bits of the mantissa: gradients of fp32 runs would no longer agree with those of CPU ranks.
  at::globalContext().setAllowTF32CuBLAS(false);
  at::globalContext().setAllowTF32CuDNN(false);
  // Segments that grow: blocks of very different sizes then leave no gaps that nothing fits. And host memory that is
  // allocated first and then pinned, which several threads can do at once. A user's settings stay.
  if (std::getenv("PYTORCH_ALLOC_CONF") == nullptr && std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr)
    c10::cuda::CUDACachingAllocator::setAllocatorSettings(
        "expandable_segments:True,pinned_use_cuda_host_register:True");
  if (!deterministic) return;
  // cuBLAS repeats its sums only with a workspace of its own for each stream.
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  // Not as warnings only: the flash kernel of attention fixes its order of additions only where the mode is strict.
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

}  // namespace planwright::executor
