#include "planner/cli/steady_lines.h"

#include <algorithm>
#include <utility>

namespace planwright {

using std::chrono::milliseconds;

SteadyLines::SteadyLines(bool quiet, milliseconds every, std::ostream& out) : every_(every), out_(out) {
  if (!quiet) ticks_ = std::jthread([this](const std::stop_token& stop) { Tick(stop); });
}

SteadyLines::~SteadyLines() {
  if (!ticks_.joinable()) return;
  ticks_.request_stop();
  ticks_.join();
}

void SteadyLines::Say(std::function<std::string()> line) {
  const std::lock_guard lock(mutex_);
  line_ = std::move(line);
}

void SteadyLines::Tick(const std::stop_token& stop) {
  constexpr milliseconds kLook{200};
  std::unique_lock lock(mutex_);
  const auto never = [] { return false; };
  while (!wakes_.wait_for(lock, stop, std::min(kLook, every_), never) && !stop.stop_requested()) {
    const auto now = std::chrono::steady_clock::now();
    if (!line_ || now - told_ < every_) continue;
    const std::string line = line_();
    if (line.empty()) continue;
    told_ = now;
    out_ << line + "\n" << std::flush;
  }
}

}  // namespace planwright
