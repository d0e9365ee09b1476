// The end that connects: to a program that proves that it knows the secret, and to which it proves the same.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/wire/connection/byte_stream.h"
#include "planner/wire/connection/proof.h"

namespace planwright {

struct Endpoint {
  std::string host;                    // for messages
  std::vector<std::string> addresses;  // numeric; tried one after the other
  int port = 0;

  std::string text() const;  // "node1:29500"
};

// Waits until the socket can be read (POLLIN) or written (POLLOUT). DeadlineExceeded if that takes too long.
absl::Status WaitForSocket(int socket, short event, std::chrono::steady_clock::time_point deadline);

// Sends all of the bytes. DeadlineExceeded if that takes too long; Unavailable: the connection is lost.
absl::Status SendAll(ByteStream& stream, std::string_view bytes, std::chrono::steady_clock::time_point deadline);

// Connects to a numeric address, once, checks that the server knows `secret`, and proves that this end does. Until the
// server has proved itself no byte beyond its proof is read. FailedPrecondition if it has another secret,
// InvalidArgument if it is another program, Unavailable if nobody answers or the connection is closed.
absl::StatusOr<ByteStream> ConnectOnce(const std::string& address, int port, const Purpose& purpose,
                                       const std::string& secret, std::chrono::milliseconds patience);

// The same, at the addresses of an endpoint in turn. What does not answer, refuses or hangs up is tried again for
// `patience`, and then Unavailable. FailedPrecondition if a server with another secret answers, and Unavailable if it
// is another program, both at once. Errors are one line with host and port.
absl::StatusOr<ByteStream> ConnectProven(const Endpoint& endpoint, const Purpose& purpose, const std::string& secret,
                                         std::chrono::milliseconds patience);

// Tries to connect, for `patience`, to a port at which another kind of program listens. Returns the numeric address
// that answered. Unavailable, in one line.
absl::StatusOr<std::string> WaitUntilReachable(const Endpoint& endpoint, std::chrono::milliseconds patience);

}  // namespace planwright
