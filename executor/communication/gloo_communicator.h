// c10d's Gloo behind Communicator: host tensors, TCP.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/communication/communicator.h"
#include "executor/communication/failure.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

// Blocks until all `ranks` have called it with the same `name`. `store` is shared by the run. `address` is this host's:
// a local one keeps the traffic on the loopback interface, anything else takes the interface of the host name
// (GLOO_SOCKET_IFNAME wins). Joining, and each wait of a communication later, may take `timeout`. Throws
// CommunicationError, as do the communicator's calls.
std::unique_ptr<Communicator> MakeGlooCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index,
                                                   const std::string& address, std::chrono::milliseconds timeout);

// What an exception of Gloo's own says by its type; nullopt: it is none. Gloo has no type for a time-out: whoever
// waited knows the time.
std::optional<FailureKind> GlooFailureKind(const std::exception& error);

}  // namespace planwright::executor
