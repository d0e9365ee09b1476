// The store that the ranks of a run meet at: keys and values in the memory of one process, for whoever proves that it
// knows the secret of the run. A thread of its own serves all connections (docs/rendezvous.md).
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace planwright {

// A stranger who takes longer to prove itself is closed (proven_server.h).
inline constexpr std::chrono::seconds kProofPatience{5};

class StoreServer {
 public:
  // Listens at a numeric address of this machine ("127.0.0.1") and a port; 0: a free one. Nobody but the clients that
  // know `secret` is answered. Raises this process's soft limit of open files to the hard one, as every rank has
  // connections. The thread that serves blocks all signals. Unavailable, with address and port, if it cannot listen
  // there; InvalidArgument if there is no such address.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(const std::string& address, int port, std::string secret);
  // Closes all connections, and ends the thread.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  const std::string& address() const { return address_; }
  int port() const { return port_; }

 private:
  class Loop;
  StoreServer(std::string address, int port, std::unique_ptr<Loop> loop);

  const std::string address_;
  const int port_;
  const std::unique_ptr<Loop> loop_;
};

}  // namespace planwright
