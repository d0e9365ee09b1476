#include "executor/communication/failure.h"

#include <c10/util/Exception.h>

#include "executor/communication/backends.h"
#include "planner/run_files/exit_status.h"

namespace planwright::executor {

FailureKind FailureKindOf(const std::exception& error) {
  if (const auto* known = dynamic_cast<const CommunicationError*>(&error)) return known->kind();
  // CUDA errors, also those of earlier launches that surface in a later call.
  if (dynamic_cast<const c10::AcceleratorError*>(&error) != nullptr) return FailureKind::kDevice;
  // The store of the run does not answer: rank 0, which serves it, is gone.
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) return FailureKind::kPeerLost;
  return GlooFailureKind(error).value_or(FailureKind::kOurs);
}

int ExitStatusOf(FailureKind kind) {
  switch (kind) {
    case FailureKind::kPeerLost: return kExitPeerLost;
    case FailureKind::kTimeOut: return kExitHang;
    case FailureKind::kDevice: return kExitDevice;
    case FailureKind::kOurs: break;
  }
  return kExitInternal;
}

std::string MessageOf(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

}  // namespace planwright::executor
