// Lines on stderr, from a thread of its own, so that whoever looks sees at least every two seconds that a command goes
// on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>

namespace planwright {

class SteadyLines {
 public:
  // `every`: a line is printed when none was for so long. `quiet`: none ever is.
  explicit SteadyLines(bool quiet, std::chrono::milliseconds every = std::chrono::milliseconds(1500),
                       std::ostream& out = std::cerr);
  ~SteadyLines();
  SteadyLines(const SteadyLines&) = delete;
  SteadyLines& operator=(const SteadyLines&) = delete;

  // What goes on from now on, without a line break; empty: nothing that needs a line. It is asked for by the thread
  // that prints it, never after the next call of Say.
  void Say(std::function<std::string()> line);

 private:
  void Tick(const std::stop_token& stop);

  const std::chrono::milliseconds every_;
  std::ostream& out_;
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::function<std::string()> line_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
  std::jthread ticks_;
};

}  // namespace planwright
