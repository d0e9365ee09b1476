#include "executor/communication/failure.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <new>

#include "executor/communication/backends.h"
#include "planner/base/files/exit_status.h"

namespace planwright::executor {
namespace {

constexpr int kCudaOutOfMemory = 2;  // cudaErrorMemoryAllocation, which builds without CUDA have no name for

}  // namespace

FailureKind FailureKindOf(const std::exception& error) {
  if (const auto* known = dynamic_cast<const CommunicationError*>(&error)) return known->kind();
  // The allocator of a device throws it, after it has tried everything.
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return FailureKind::kDeviceMemory;
  // CUDA errors, also those of earlier launches that surface in a later call.
  if (const auto* device = dynamic_cast<const c10::AcceleratorError*>(&error))
    return device->get_error_code() == kCudaOutOfMemory ? FailureKind::kDeviceMemory : FailureKind::kDevice;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return FailureKind::kHostMemory;
  if (dynamic_cast<const c10::DistStoreError*>(&error) != nullptr ||
      dynamic_cast<const c10::DistNetworkError*>(&error) != nullptr)
    return FailureKind::kStoreLost;
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return FailureKind::kPeerLost;
  return GlooFailureKind(error).value_or(FailureKind::kOurs);
}

int ExitStatusOf(FailureKind kind) {
  switch (kind) {
    case FailureKind::kPeerLost: return kExitPeerLost;
    case FailureKind::kTimeOut: return kExitHang;
    case FailureKind::kDevice: return kExitDevice;
    case FailureKind::kDeviceMemory: return kExitDeviceMemory;
    case FailureKind::kHostMemory: return kExitHostMemory;
    case FailureKind::kNetwork: return kExitNetwork;
    case FailureKind::kStoreLost: return kExitStoreLost;
    case FailureKind::kOurs: break;
  }
  return kExitInternal;
}

std::string MessageOf(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  if (of_torch != nullptr) return of_torch->what_without_backtrace();
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return memory ? std::string("out of host memory: ") + error.what() : error.what();
}

std::string FirstLineOf(const std::exception& error) {
  const std::string text = MessageOf(error);
  return text.substr(0, std::min<size_t>(text.find('\n'), 300));
}

}  // namespace planwright::executor
