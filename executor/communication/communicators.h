// The live communicators of a rank: one for each used group of two or more ranks it is in and each stream that the
// group is used on, made in plan order.
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

class Communicators {
 public:
  // Every rank calls it; creation order is the plan's on all of them, so no two ranks wait for each other in different
  // groups. Keys in `store` start with `nonce`, which no other run shares. `joining` is told of each communicator
  // before this rank waits for its others.
  static Communicators Make(
      const Plan& plan, int rank, Backend backend, const c10::intrusive_ptr<c10d::Store>& store,
      const std::string& nonce, const std::string& address, std::chrono::milliseconds timeout,
      const std::function<void(const std::string&)>& joining = [](const std::string&) {});

  // Null if this rank is alone in the group, or in none.
  Communicator* Find(const std::string& group, const std::string& stream) const;

 private:
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Communicator>> all_;  // by group and stream
};

// What this rank's device or backend has found out while nobody called it. From any thread; does not wait.
std::optional<CommunicationError> FindFailure(at::Device device);

// Lets go of all communication under way in this process, so that no kernel of it waits on the device when the process
// ends. From any thread; whoever is inside a communication must not go on afterwards. Can block where a device hangs.
void AbortCommunication(at::Device device);

}  // namespace planwright::executor
