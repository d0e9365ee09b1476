// The communicators of a rank: one for each group of two or more ranks that it is in, and for each stream that the plan
// uses the group on (docs/layouts/grids.md#groups).
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/communication/communicator.h"
#include "executor/communication/failure.h"
#include "planner/plan/plan.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

enum class Backend { kGloo, kNccl };

// "language.dp", "language.dp on reduce"
std::string CommunicatorName(const std::string& group, const std::string& stream);

// One communicator of `ranks`, of which this rank is that at `index`. As of backends.h: all of them must call it with
// the same `name`. `address`, `timeout`: for Gloo. Throws CommunicationError.
std::unique_ptr<Communicator> MakeCommunicator(Backend backend, const c10::intrusive_ptr<c10d::Store>& store,
                                               const std::string& name, const std::vector<int>& ranks, int index,
                                               const std::string& address, std::chrono::milliseconds timeout);

class Communicators {
 public:
  // Every rank must call it. All create their communicators in the order of the plan, so no two ranks wait for each
  // other in different groups. Keys in `store` start with `nonce`, which belongs to this run alone. `joining` is called
  // with the name of each communicator before this rank waits for its other members. `address`: of this machine, for
  // Gloo. Throws CommunicationError.
  static Communicators Make(
      const Plan& plan, int rank, Backend backend, const c10::intrusive_ptr<c10d::Store>& store,
      const std::string& nonce, const std::string& address, std::chrono::milliseconds timeout,
      const std::function<void(const std::string&)>& joining = [](const std::string&) {});

  // Null if this rank is alone in its group, or in no group of that name and stream.
  Communicator* Find(const std::string& group, const std::string& stream) const;

 private:
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Communicator>> all_;  // by group and stream
};

// A failure that the device or its backend has noticed by itself. May be called from any thread; does not wait for
// work.
std::optional<CommunicationError> FindFailure(at::Device device);

// Aborts all communication of this process, so that no kernel still waits for a peer when the process ends. May be
// called from any thread. A thread that is inside a communication must not go on afterwards. Can block if the device
// hangs.
void AbortCommunication(at::Device device);

}  // namespace planwright::executor
