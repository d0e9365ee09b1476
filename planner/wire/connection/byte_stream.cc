#include "planner/wire/connection/byte_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace planwright {

absl::Status ByteStream::Flush() {
  while (unsent() > 0) {
    const ssize_t count = send(socket_.get(), out_.data() + sent_, unsent(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return absl::OkStatus();
    if (count < 0) return absl::UnavailableError(std::strerror(errno));
    sent_ += static_cast<size_t>(count);
  }
  out_ = std::string();  // gives large memory back
  sent_ = 0;
  return absl::OkStatus();
}

absl::Status ByteStream::Receive(size_t most) {
  static thread_local char buffer[kBytesOfATurn];
  if (in_.empty() && in_.capacity() > sizeof buffer) in_ = std::string();  // gives large memory back
  const ssize_t count = recv(socket_.get(), buffer, std::min(most, sizeof buffer), 0);
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return absl::OkStatus();
  if (count < 0) return absl::UnavailableError(std::strerror(errno));
  if (count == 0 && most > 0) return absl::UnavailableError("the connection was closed");
  in_.append(buffer, static_cast<size_t>(count));
  return absl::OkStatus();
}

}  // namespace planwright
