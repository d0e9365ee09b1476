// A connection to the store of a run. It knows nothing of torch; executor/communication/run_store.h makes a c10d::Store
// of it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/rendezvous/store_protocol.h"

namespace planwright {

struct StoreEndpoint {
  std::string host;                    // for messages
  std::vector<std::string> addresses;  // numeric; tried one after the other
  int port = 0;

  std::string text() const;  // "node1:29500"
};

// Tries to connect, for `patience`, to a port at which something else than a store listens. Returns the numeric address
// that answered. Unavailable, in one line.
absl::StatusOr<std::string> WaitUntilReachable(const StoreEndpoint& endpoint, std::chrono::milliseconds patience);

// May be called from any thread; one that waits in Ask holds up the others.
class StoreClient {
 public:
  // Connects, checks that the store knows `secret`, and proves that this end does. What does not answer, refuses or
  // hangs up is tried again for `patience`, and then Unavailable. FailedPrecondition if a store with another secret
  // answers, and Unavailable if it is no store, both at once. Errors are one line with host and port.
  static absl::StatusOr<std::unique_ptr<StoreClient>> Connect(const StoreEndpoint& endpoint, const std::string& secret,
                                                              std::chrono::milliseconds patience);
  ~StoreClient();
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  // Sends a request and returns the fields and the number of its reply. `timeout`: for the keys that kGet and kWait
  // wait for, and for the store to answer anything else. DeadlineExceeded if keys do not come; the connection stays
  // good. FailedPrecondition if the store refuses the request; ResourceExhausted if it is too long. Unavailable if the
  // store is gone or does not answer; so are all calls after that.
  absl::StatusOr<StoreMessage> Ask(const StoreMessage& request, std::chrono::milliseconds timeout);

  // The address of this machine that the connection has.
  const std::string& local_address() const { return local_address_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  StoreClient(StoreEndpoint endpoint, int socket);

  absl::Status Shake(const std::string& secret, Deadline deadline);
  absl::Status Send(const std::string& bytes, Deadline deadline);
  absl::Status Receive(Deadline deadline);
  absl::StatusOr<StoreMessage> ReceiveReply(Deadline deadline);
  absl::Status Break(const absl::Status& why);

  const StoreEndpoint endpoint_;
  const int socket_;
  const std::string local_address_;
  std::mutex mutex_;
  std::string in_;       // bytes that were received and not used
  absl::Status broken_;  // why the connection cannot be used any more
};

}  // namespace planwright
