// A connection to the store of a run. It knows nothing of torch; executor/communication/run_store.h makes a c10d::Store
// of it.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/wire/connection/proven_client.h"
#include "planner/wire/rendezvous/store_protocol.h"

namespace planwright {

// May be called from any thread; one that waits in Ask holds up the others.
class StoreClient {
 public:
  // Errors of ConnectProven (proven_client.h).
  static absl::StatusOr<std::unique_ptr<StoreClient>> Connect(const Endpoint& endpoint, const std::string& secret,
                                                              std::chrono::milliseconds patience);
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
  StoreClient(Endpoint endpoint, ByteStream stream);

  absl::StatusOr<StoreMessage> ReceiveReply(Deadline deadline);
  absl::Status Break(const absl::Status& why);

  const Endpoint endpoint_;
  std::mutex mutex_;
  ByteStream stream_;
  const std::string local_address_;
  absl::Status broken_;  // why the connection cannot be used any more
};

}  // namespace planwright
