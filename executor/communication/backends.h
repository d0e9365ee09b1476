// The two backends of Communicator: Gloo (of c10d) for host tensors over TCP, and NCCL for device tensors.
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

// --- Gloo

// Blocks until all `ranks` have called it with the same `name`. `store` is shared by the whole run. `address` is
// of this machine: the one at which its peers connect to it. Joining, and each later wait of a communication, may take
// `timeout`. Throws CommunicationError, as do the calls of the communicator.
std::unique_ptr<Communicator> MakeGlooCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index,
                                                   const std::string& address, std::chrono::milliseconds timeout);

// The kind of failure that the type of a Gloo exception says; nullopt: not a Gloo exception. Gloo has no type for a
// time-out, so the caller must compare the time that it waited.
std::optional<FailureKind> GlooFailureKind(const std::exception& error);

// --- NCCL, only in builds with CUDA. Communicators work on the current stream of the current device.

// Blocks until all `ranks` have called it with the same `name`; the first of them passes NCCL's unique id to the others
// through `store`. Destroying the communicator aborts its work. NCCL has no time-out: if a peer never comes, this call,
// the first calls of the communicator, or the device block for ever. The watchdog (executor/rank/watchdog.h) ends the
// rank then. Throws CommunicationError, as do the calls of the communicator.
std::unique_ptr<Communicator> MakeNcclCommunicator(const c10::intrusive_ptr<c10d::Store>& store,
                                                   const std::string& name, std::vector<int> ranks, int index);

// A failure that the current device, or NCCL in any communicator of this process, has noticed by itself. May be called
// from any thread; does not wait for work on the device.
std::optional<CommunicationError> FindNcclFailure();

// Aborts all communicators of this process together: kernels that wait for a peer end. May be called from any thread,
// even while another is inside NCCL; that thread must not go on afterwards. Can block if the device hangs.
void AbortNccl();

// Makes device `index` current, and switches TF32 off, so that fp32 products are computed in fp32. `deterministic`:
// LibTorch takes only kernels that give the same bits in every run. c10::Error if the host has no such device.
void UseCudaDevice(int index, bool deterministic);

}  // namespace planwright::executor
