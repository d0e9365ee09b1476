// A plain socket for tests: a stranger who sends any bytes, or a server that answers with any.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "planner/wire/connection/socket_address.h"

namespace planwright::testing {

// A socket that blocks. Closed with this.
class Stranger {
 public:
  explicit Stranger(int socket) : socket_(socket) {}
  Stranger(const std::string& address, int port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const absl::StatusOr<SocketAddress> there = SocketAddress::Parse(address, port);
    EXPECT_TRUE(there.ok() && connect(socket_, there->pointer(), there->size()) == 0) << std::strerror(errno);
  }
  Stranger(Stranger&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  Stranger& operator=(Stranger&&) = delete;
  ~Stranger() {
    if (socket_ >= 0) close(socket_);
  }
  // False if the other end is gone already.
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // So many bytes, or fewer if the other end closes the connection before.
  std::string Read(size_t count) const {
    std::string bytes;
    while (bytes.size() < count) {
      char buffer[4096];
      const ssize_t got = recv(socket_, buffer, std::min(sizeof buffer, count - bytes.size()), 0);
      if (got <= 0) break;
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return bytes;
  }
  // Waits until the other end has closed the connection without a byte.
  bool IsClosed() const { return Read(1).empty(); }
  // Whether the other end has not closed it, and has sent nothing.
  bool IsOpen() const {
    pollfd watched = {.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&watched, 1, 0) == 0;
  }
  int socket() const { return socket_; }

 private:
  static int socket(int family, int type, int protocol) { return ::socket(family, type, protocol); }
  int socket_;
};

// Sends `text` again and again until the other end closes the connection, or `most` bytes are sent. Returns how many
// were: what the kernel holds of a connection is far below a hundred megabytes.
inline size_t SendEndlessly(const Stranger& stranger, std::string_view text, size_t most = size_t{1} << 30) {
  std::string block;
  while (block.size() < 1 << 16) block += text;
  size_t sent = 0;
  while (sent < most) {
    const ssize_t count = send(stranger.socket(), block.data(), block.size(), MSG_NOSIGNAL);
    if (count <= 0) break;
    sent += static_cast<size_t>(count);
  }
  return sent;
}
inline constexpr size_t kWhatTheKernelHolds = size_t{100} << 20;

}  // namespace planwright::testing
