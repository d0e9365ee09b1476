#include "planner/run/launch/line_pipe.h"

#include <unistd.h>

#include <cerrno>

namespace planwright {

void LinePipe::Drain(const std::function<void(std::string_view line)>& sink) {
  constexpr int kMostReads = 64;  // a pipe of 1 MiB, which is the most, four times over
  char bytes[65536];
  for (int reads = 0; fd_ >= 0; ++reads) {
    if (reads == kMostReads) return;
    const ssize_t count = read(fd_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) break;
    rest_.append(bytes, count);
    size_t from = 0;
    for (size_t end; (end = rest_.find('\n', from)) != std::string::npos; from = end + 1)
      sink(std::string_view(rest_).substr(from, end - from));
    rest_.erase(0, from);
    if (rest_.size() < kLongestPrinted) continue;
    sink(rest_);
    rest_.clear();
  }
  if (!rest_.empty()) sink(rest_);
  rest_.clear();
  Close();
}

void LinePipe::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

}  // namespace planwright
