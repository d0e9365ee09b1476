// What can go wrong with a communication or a device, as a type: set where a backend's error is seen, never guessed
// from its words later.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace planwright::executor {

enum class FailureKind {
  kPeerLost,  // another rank is gone, or cannot be reached
  kTimeOut,   // nothing is known to be broken, but the time allowed is over
  kDevice,    // this rank's device, driver or host refused
  kOurs,      // none of these: Planwright itself is wrong
};

class CommunicationError : public std::runtime_error {
 public:
  CommunicationError(FailureKind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
  FailureKind kind() const { return kind_; }

 private:
  FailureKind kind_;
};

// Of any exception: a CommunicationError's own, or what its type says (LibTorch's errors of devices and stores; Gloo's,
// which may come from a thread of Gloo's where nobody can catch them); otherwise kOurs.
FailureKind KindOf(const std::exception& error);

// The exit status (planner/run_files/exit_status.h) of a rank that failed so.
int ExitStatusOf(FailureKind kind);

// what(), without the C++ backtrace that LibTorch appends.
std::string WordsOf(const std::exception& error);

}  // namespace planwright::executor
