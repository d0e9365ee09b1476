// Numeric addresses of sockets, IPv4 and IPv6. Names are resolved where the planner's rule against name services does
// not bind (docs/decisions/0002): executor/communication/resolve.h.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "absl/status/statusor.h"

namespace planwright {

class SocketAddress {
 public:
  // `address` such as "10.0.0.7" or "::1". InvalidArgument if it is none, or if the port is not from 0 to 65535.
  static absl::StatusOr<SocketAddress> Parse(const std::string& address, int port);
  static SocketAddress OfThisEnd(int socket);
  static SocketAddress OfOtherEnd(int socket);

  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return size_; }
  int family() const { return storage_.ss_family; }
  std::string address() const;
  int port() const;
  bool operator==(const SocketAddress& other) const { return address() == other.address() && port() == other.port(); }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = sizeof(sockaddr_storage);
};

// "10.0.0.7:29500", "[::1]:29500"
std::string HostAndPort(const std::string& host, int port);

// A TCP socket that does not block, is closed on exec, and sends at once. -1 with errno.
int OpenTcpSocket(int family);
// Sets what every connection has: no delay for small messages, and a notice within a minute if the other host is gone.
void PrepareConnection(int socket);

}  // namespace planwright
