// Raw NCCL behind Communicator: device tensors, on the current stream of the current device.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <vector>

#include "executor/communication/communicator.h"

namespace c10d {
class Store;
}

namespace planwright::executor {

// Blocks until all `ranks` have called it with the same `name`; the first of them hands out the id through `store`.
std::unique_ptr<Communicator> MakeNcclCommunicator(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name,
                                                   std::vector<int> ranks, int index);

// Sets the current device, and products of fp32 to be products of fp32 (no TF32). Throws if the host has no such device.
void UseCudaDevice(int index);

}  // namespace planwright::executor
