// Where the time goes between the start of a rank's process and its first step.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace planwright::executor {

// Used by one thread at a time. Times are those of the host: work that a device was given may still be under way.
class StartUp {
 public:
  using Clock = std::chrono::steady_clock;

  // The time since the process began (mostly the loading of libraries) counts as the first part, "program".
  StartUp();

  // From now on the time counts for `part`, which may have come before.
  void Enter(const std::string& part);

  // "ready in 31.2 s: program 1.0, plan 0.1, communicators 0.5, memory 1.6, weights 28.0"
  std::string Line();
  // What the line said last.
  double seconds() const { return seconds_; }
  const std::string& parts() const { return text_; }  // "program 1.0, plan 0.1, ..."

 private:
  std::vector<std::pair<std::string, Clock::duration>> parts_;  // in the order in which they came first
  size_t part_ = 0;                                             // that the time counts for
  Clock::time_point since_;
  double seconds_ = 0;
  std::string text_;
};

}  // namespace planwright::executor
