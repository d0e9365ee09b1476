// How a rank ends for a failure that has an exit status of its own.
#pragma once

#include <stdexcept>
#include <string>

namespace planwright::executor {

// Ends the rank with an exit status of planner/base/files/exit_status.h. what() is the message for the log. `located`:
// the message names rank, instruction and recipe line already, so nobody adds them again.
class ExitError : public std::runtime_error {
 public:
  ExitError(int status, const std::string& message, bool located = false)
      : std::runtime_error(message), status_(status), located_(located) {}
  int status() const { return status_; }
  bool located() const { return located_; }

 private:
  int status_;
  bool located_;
};

}  // namespace planwright::executor
