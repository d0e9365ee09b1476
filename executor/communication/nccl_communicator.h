// Raw NCCL behind Communicator: device tensors, on the current stream of the current device.
#pragma once

#include <c10/util/intrusive_ptr.h>

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

// Blocks until all `ranks` have called it with the same `name`; the first of them hands out the id through `store`.
// Destroying it aborts what it has under way. NCCL has no deadline: a peer that never comes blocks this call, the first
// calls of a communicator, and the device; whoever watches the rank ends it (executor/watchdog.h). Throws
// CommunicationError, as do the communicator's calls.
std::unique_ptr<Communicator> MakeNcclCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index);

// What the current device, or NCCL in any communicator of this process, has found out by itself. From any thread; does
// not wait.
std::optional<CommunicationError> FindNcclFailure();

// Aborts all communicators of this process together: kernels that wait for a peer end. From any thread, also while
// another is inside NCCL; that thread must not go on afterwards. Can block where a device hangs.
void AbortNccl();

// Sets the current device, and products of fp32 to be products of fp32 (no TF32). Throws if the host has no such
// device.
void UseCudaDevice(int index);

}  // namespace planwright::executor
