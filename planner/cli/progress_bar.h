// How far a long command is, in one line of stderr that changes. Only on a terminal, and only beyond two seconds.
#pragma once

#include <chrono>
#include <string>

namespace planwright {

// "[======      ] 50% of 3.2 GB, 12 s left". `done`: the part of the work, 0 to 1, which took `passed` seconds.
std::string ProgressText(double done, const std::string& what, double passed);

class ProgressBar {
 public:
  ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { Hide(); }

  // As ProgressText. A call costs nothing if the line was shown a moment ago.
  void Show(double done, const std::string& what);
  // Takes the line away until the next Show.
  void Hide();
  bool on_terminal() const { return terminal_; }

 private:
  using Clock = std::chrono::steady_clock;

  const bool terminal_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point shown_ = began_;
  bool open_ = false;
};

}  // namespace planwright
