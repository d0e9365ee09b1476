// Plain sockets for tests: a stranger who sends any bytes, and a server that answers with any.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "planner/rendezvous/proof.h"
#include "planner/rendezvous/socket_address.h"
#include "planner/rendezvous/store_client.h"
#include "planner/rendezvous/store_protocol.h"
#include "planner/rendezvous/store_server.h"
#include "tests/support/eventually.h"

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

inline std::unique_ptr<StoreServer> StartServer(const std::string& secret = "the secret", int port = 0) {
  absl::StatusOr<std::unique_ptr<StoreServer>> server = StoreServer::Start("127.0.0.1", port, secret);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

inline StoreEndpoint EndpointOf(const StoreServer& server) {
  return {server.address(), {server.address()}, server.port()};
}

inline std::unique_ptr<StoreClient> ConnectTo(const StoreServer& server, const std::string& secret = "the secret") {
  absl::StatusOr<std::unique_ptr<StoreClient>> client =
      StoreClient::Connect(EndpointOf(server), secret, std::chrono::milliseconds(kPatience));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

inline absl::StatusOr<StoreMessage> Ask(StoreClient& client, StoreOp op, std::vector<std::string> fields,
                                        int64_t number = 0, std::chrono::milliseconds timeout = kPatience) {
  return client.Ask({static_cast<uint8_t>(op), number, std::move(fields)}, timeout);
}

// What the store holds, as one client sees it: the value of a key, or "(none)".
inline std::string ValueOf(StoreClient& client, const std::string& key) {
  const absl::StatusOr<StoreMessage> there = Ask(client, StoreOp::kCheck, {key});
  if (!there.ok() || there->number == 0) return there.ok() ? "(none)" : std::string(there.status().message());
  return Ask(client, StoreOp::kGet, {key})->fields.at(0);
}

}  // namespace planwright::testing
