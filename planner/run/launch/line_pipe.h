// The read end of a process's output, as lines.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace planwright {

// A longer line is passed on in parts. In JSON a byte may take six, and a part is one message of an agent.
inline constexpr size_t kLongestPrinted = size_t{1} << 20;

class LinePipe {
 public:
  // Takes over a non-blocking descriptor.
  explicit LinePipe(int fd) : fd_(fd) {}
  LinePipe(LinePipe&& other) noexcept : fd_(std::exchange(other.fd_, -1)), rest_(std::move(other.rest_)) {}
  LinePipe& operator=(LinePipe&&) = delete;
  ~LinePipe() { Close(); }

  int fd() const { return fd_; }  // -1: closed
  // Reads what is there and passes on each line without its break; of a writer that never pauses only a part, more than
  // a pipe can hold. Once the writer has closed the pipe, a last line without a break is passed on and the pipe is
  // closed.
  void Drain(const std::function<void(std::string_view line)>& sink);

 private:
  void Close();

  int fd_;
  std::string rest_;
};

}  // namespace planwright
