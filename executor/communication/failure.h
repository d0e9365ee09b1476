// The kinds of failure of a communication or a device. The kind is set where a backend's error is caught, by its type.
// It is never guessed from an error's text.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace planwright::executor {

enum class FailureKind {
  kPeerLost,      // another rank is gone, or cannot be reached
  kTimeOut,       // nothing is known to be broken, but the allowed time is over
  kDevice,        // this rank's device, its driver or its host failed
  kDeviceMemory,  // its device has no memory left
  kHostMemory,    // this process cannot have more host memory
  kNetwork,       // NCCL lost a connection, or a call of the system failed in it
  kStoreLost,     // the store of the run does not answer
  kOurs,          // none of these: an error of Planwright itself
};

class CommunicationError : public std::runtime_error {
 public:
  CommunicationError(FailureKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

// The kind of any exception: that of a CommunicationError, else what the type says (LibTorch's errors of devices,
// memory and the store, std::bad_alloc, and Gloo's own exceptions), else kOurs.
FailureKind FailureKindOf(const std::exception& error);

// The exit status of a rank that ends for such a failure (planner/base/files/exit_status.h).
int ExitStatusOf(FailureKind kind);

// what(), without the C++ backtrace that LibTorch appends.
std::string MessageOf(const std::exception& error);
// Of that the first line, and of it at most 300 bytes: c10d's own errors go on for a screen.
std::string FirstLineOf(const std::exception& error);

}  // namespace planwright::executor
