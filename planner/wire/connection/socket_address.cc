#include "planner/wire/connection/socket_address.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "absl/strings/str_cat.h"

namespace planwright {

absl::StatusOr<SocketAddress> SocketAddress::Parse(const std::string& address, int port) {
  if (port < 0 || port > 65535) return absl::InvalidArgumentError(absl::StrCat("there is no port ", port));
  SocketAddress result;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage_);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage_);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(port));
    result.size_ = sizeof *v4;
    return result;
  }
  if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(static_cast<uint16_t>(port));
    result.size_ = sizeof *v6;
    return result;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", address, "' is no numeric address, such as 10.0.0.7"));
}

SocketAddress SocketAddress::OfThisEnd(int socket) {
  SocketAddress result;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&result.storage_), &result.size_) != 0) return {};
  return result;
}

SocketAddress SocketAddress::OfOtherEnd(int socket) {
  SocketAddress result;
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&result.storage_), &result.size_) != 0) return {};
  return result;
}

std::string SocketAddress::address() const {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes = family() == AF_INET6
                          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr)
                          : static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr);
  if (family() != AF_INET && family() != AF_INET6) return "";
  return inet_ntop(family(), bytes, text, sizeof text) == nullptr ? "" : text;
}

int SocketAddress::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
}

std::string HostAndPort(const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "[" : "", host, v6 ? "]:" : ":", port);
}

int OpenTcpSocket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

void PrepareConnection(int socket) {
  const int on = 1, idle = 20, interval = 10, probes = 3;  // seconds
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace planwright
