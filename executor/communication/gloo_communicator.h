// Gloo (of c10d) as a Communicator: host tensors over TCP.
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

// Blocks until all `ranks` have called it with the same `name`. `store` is shared by the whole run. `address` is
// MASTER_ADDR: if it is local, traffic stays on the loopback interface, else it takes the interface of the host name.
// The variable GLOO_SOCKET_IFNAME overrides both. Joining, and each later wait of a communication, may take `timeout`.
// Throws CommunicationError, as do the calls of the communicator.
std::unique_ptr<Communicator> MakeGlooCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index,
                                                   const std::string& address, std::chrono::milliseconds timeout);

// The kind of failure that the type of a Gloo exception says; nullopt: not a Gloo exception. Gloo has no type for a
// time-out, so the caller must compare the time that it waited.
std::optional<FailureKind> GlooFailureKind(const std::exception& error);

}  // namespace planwright::executor
