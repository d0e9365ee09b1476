#include "executor/communication/communicators.h"

#include <algorithm>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/backends.h"
#ifdef PLANWRIGHT_CUDA
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace planwright::executor {

std::unique_ptr<Communicator> MakeCommunicator(Backend backend, const c10::intrusive_ptr<c10d::Store>& store,
                                               const std::string& name, const std::vector<int>& ranks, int index,
                                               const std::string& address, std::chrono::milliseconds timeout) {
  if (backend == Backend::kGloo) return MakeGlooCommunicator(store, name, ranks, index, address, timeout);
#ifdef PLANWRIGHT_CUDA
  return MakeNcclCommunicator(store, name, ranks, index);
#else
  TORCH_CHECK(false, "this executor was built without CUDA, so it has no NCCL");
#endif
}

std::string CommunicatorName(const std::string& group, const std::string& stream) {
  return stream.empty() ? group : group + " on " + stream;
}

Communicators Communicators::Make(const Plan& plan, int rank, Backend backend,
                                  const c10::intrusive_ptr<c10d::Store>& store, const std::string& nonce,
                                  const std::string& address, std::chrono::milliseconds timeout,
                                  const std::function<void(const std::string&)>& joining) {
  // Plan order. A rank joins only its own instance of a group; instances do not wait for each other.
  Communicators made;
  for (const Group& group : plan.groups) {
    if (!group.used()) continue;  // no instruction names it
    const std::vector<std::vector<int>> members = MembersOf(plan, group);
    for (size_t i = 0; i < members.size(); ++i) {
      const auto at = std::find(members[i].begin(), members[i].end(), rank);
      // A rank that is alone in its group has nobody to communicate with.
      if (members[i].size() < 2 || at == members[i].end()) continue;
      // One communicator for each stream: two operations of one communicator cannot run at the same time.
      for (const std::string& stream : group.streams) {
        joining(CommunicatorName(group.name, stream));
        // The name of the meeting point in the store: the same on all members, different for every communicator.
        const std::string name = nonce + "/" + group.name + "/" + std::to_string(i) + "/" + stream;
        made.all_[{group.name, stream}] = MakeCommunicator(backend, store, name, members[i],
                                                           static_cast<int>(at - members[i].begin()), address, timeout);
      }
    }
  }
  return made;
}

Communicator* Communicators::Find(const std::string& group, const std::string& stream) const {
  const auto it = all_.find({group, stream});
  return it == all_.end() ? nullptr : it->second.get();
}

std::optional<CommunicationError> FindFailure(at::Device device) {
#ifdef PLANWRIGHT_CUDA
  if (device.is_cuda()) {
    c10::cuda::set_device(device.index());  // the calling thread may never have used CUDA
    return FindNcclFailure();
  }
#endif
  return std::nullopt;  // Gloo reports failures only to the thread that waits for it
}

void AbortCommunication(at::Device device) {
#ifdef PLANWRIGHT_CUDA
  if (!device.is_cuda()) return;
  c10::cuda::set_device(device.index());
  AbortNccl();
#endif  // Gloo has no work on a device, and its sockets close with the process
}

}  // namespace planwright::executor
