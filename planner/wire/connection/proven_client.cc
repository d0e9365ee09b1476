#include "planner/wire/connection/proven_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/wire/connection/socket_address.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A connected socket, or why there is none.
absl::StatusOr<Descriptor> ConnectSocket(const std::string& address, int port, Clock::time_point deadline) {
  const absl::StatusOr<SocketAddress> there = SocketAddress::Parse(address, port);
  if (!there.ok()) return there.status();
  Descriptor socket(OpenTcpSocket(there->family()));
  if (socket.get() < 0) return absl::UnavailableError(std::strerror(errno));
  if (connect(socket.get(), there->pointer(), there->size()) != 0) {
    int error = errno;
    if (error == EINPROGRESS || error == EINTR) {
      if (absl::Status ready = WaitForSocket(socket.get(), POLLOUT, deadline); !ready.ok()) return ready;
      socklen_t size = sizeof error;
      getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) return absl::UnavailableError(std::strerror(error));
  }
  // While nobody listens at a port of this machine, the kernel may give a socket that same port for its own end, and
  // connect it to itself.
  if (SocketAddress::OfThisEnd(socket.get()) == SocketAddress::OfOtherEnd(socket.get()))
    return absl::UnavailableError(std::strerror(ECONNREFUSED));
  PrepareConnection(socket.get());
  return socket;
}

// A host that is flooded drops what asks for a connection. The kernel would ask again more and more rarely.
Clock::time_point Soon(Clock::time_point deadline) {
  return std::min(deadline, Clock::now() + std::chrono::seconds(2));
}

// Reads until `count` bytes are there, and none beyond them. `check` says whether what is there so far can be right.
absl::Status ReceiveExactly(ByteStream& stream, size_t count, Clock::time_point deadline,
                            const std::function<absl::Status(std::string_view)>& check) {
  while (stream.in().size() < count) {
    if (absl::Status ready = WaitForSocket(stream.fd(), POLLIN, deadline); !ready.ok()) return ready;
    if (absl::Status got = stream.Receive(count - stream.in().size()); !got.ok()) return got;
    if (absl::Status good = check(stream.in()); !good.ok()) return good;
  }
  return absl::OkStatus();
}

absl::Status Shake(ByteStream& stream, const Purpose& purpose, const std::string& secret, Clock::time_point deadline) {
  const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
  if (!nonce.ok()) return nonce.status();
  const std::string hello = absl::StrCat(std::string(purpose.client_magic), *nonce);
  if (absl::Status sent = SendAll(stream, hello, deadline); !sent.ok()) return sent;
  const auto stranger = [&] {
    return absl::InvalidArgumentError(
        absl::StrCat("what answers there is not ", std::string(purpose.server), " of a run"));
  };
  const auto check_magic = [&](std::string_view in) {
    const size_t magic = std::min(in.size(), kMagicBytes);
    if (in.substr(0, magic) == purpose.server_magic.substr(0, magic)) return absl::OkStatus();
    if (magic < kMagicBytes || in.substr(0, magic - 1) != purpose.server_magic.substr(0, magic - 1)) return stranger();
    return absl::InvalidArgumentError("it is of another version of Planwright");
  };
  const size_t answer = kMagicBytes + kNonceBytes + kProofBytes;
  if (absl::Status got = ReceiveExactly(stream, answer, deadline, check_magic); !got.ok()) return got;
  const std::string_view of_server = std::string_view(stream.in()).substr(kMagicBytes, kNonceBytes);
  const std::string_view proof = std::string_view(stream.in()).substr(kMagicBytes + kNonceBytes);
  if (!SameProof(proof, ServerProof(purpose, secret, *nonce, of_server)))
    return absl::FailedPreconditionError("belongs to another run: it does not know the secret of this one");
  const std::string own = ClientProof(purpose, secret, *nonce, of_server);
  stream.in().clear();
  if (absl::Status sent = SendAll(stream, own, deadline); !sent.ok()) return sent;
  // The server may close the connection for the sake of others until the proof has come: its welcome shows that it has.
  const auto check_welcome = [&](std::string_view in) { return in[0] == kWelcome ? absl::OkStatus() : stranger(); };
  absl::Status welcome = ReceiveExactly(stream, 1, deadline, check_welcome);
  stream.in().clear();
  return welcome;
}

std::string Seconds(milliseconds time) { return absl::StrCat(static_cast<double>(time.count()) / 1000, " s"); }

// Calls `attempt` for the addresses in turn until it succeeds, or `patience` is over. What tells that the wrong program
// answers ends it at once: FailedPrecondition, or InvalidArgument, which becomes Unavailable.
absl::Status TryToReach(const Endpoint& endpoint, milliseconds patience, const std::string& what,
                        const std::function<absl::Status(const std::string& address, milliseconds)>& attempt) {
  const Clock::time_point deadline = Clock::now() + patience;
  milliseconds pause(5);
  absl::Status last = absl::UnavailableError("it has no address");
  for (;;) {
    for (size_t i = 0; i < endpoint.addresses.size(); ++i) {
      // An address that is silent must leave time for the others.
      const Clock::time_point now = Clock::now();
      const auto left = (std::max(deadline, now) - now) / static_cast<int64_t>(endpoint.addresses.size() - i);
      last = attempt(endpoint.addresses[i], std::chrono::ceil<milliseconds>(left));
      if (last.ok()) return last;
      if (absl::IsFailedPrecondition(last))
        return absl::FailedPreconditionError(absl::StrCat(what, endpoint.text(), " ", last.message()));
      if (absl::IsInvalidArgument(last))
        return absl::UnavailableError(absl::StrCat("cannot use ", what, endpoint.text(), ": ", last.message()));
    }
    if (Clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, milliseconds(500));
  }
  return absl::UnavailableError(
      absl::StrCat("cannot reach ", what, endpoint.text(), " within ", Seconds(patience), ": ", last.message()));
}

}  // namespace

std::string Endpoint::text() const { return HostAndPort(host, port); }

absl::Status WaitForSocket(int socket, short event, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd watched = {.fd = socket, .events = event, .revents = 0};
    const int64_t most = 3600 * 1000;
    const int ready = poll(&watched, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, most)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return absl::UnavailableError(std::strerror(errno));
    if (ready == 0 && left.count() <= most) return absl::DeadlineExceededError("it does not answer");
  }
}

absl::Status SendAll(ByteStream& stream, std::string_view bytes, Clock::time_point deadline) {
  stream.Add(bytes);
  for (;;) {
    if (absl::Status sent = stream.Flush(); !sent.ok() || stream.unsent() == 0) return sent;
    if (absl::Status ready = WaitForSocket(stream.fd(), POLLOUT, deadline); !ready.ok()) return ready;
  }
}

absl::StatusOr<ByteStream> ConnectOnce(const std::string& address, int port, const Purpose& purpose,
                                       const std::string& secret, milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  absl::StatusOr<Descriptor> socket = ConnectSocket(address, port, Soon(deadline));
  if (!socket.ok()) return socket.status();
  ByteStream stream(*std::move(socket));
  if (absl::Status shaken = Shake(stream, purpose, secret, deadline); !shaken.ok()) return shaken;
  return stream;
}

absl::StatusOr<ByteStream> ConnectProven(const Endpoint& endpoint, const Purpose& purpose, const std::string& secret,
                                         milliseconds patience) {
  ByteStream stream;
  const auto attempt = [&](const std::string& address, milliseconds time) {
    absl::StatusOr<ByteStream> connected = ConnectOnce(address, endpoint.port, purpose, secret, time);
    if (connected.ok()) stream = *std::move(connected);
    return connected.status();
  };
  const std::string what = absl::StrCat(std::string(purpose.server), " at ");
  if (absl::Status status = TryToReach(endpoint, patience, what, attempt); !status.ok()) return status;
  return stream;
}

absl::StatusOr<std::string> WaitUntilReachable(const Endpoint& endpoint, milliseconds patience) {
  std::string found;
  const auto attempt = [&](const std::string& address, milliseconds time) {
    const absl::StatusOr<Descriptor> socket = ConnectSocket(address, endpoint.port, Soon(Clock::now() + time));
    if (socket.ok()) found = SocketAddress::OfOtherEnd(socket->get()).address();
    return socket.status();
  };
  if (absl::Status status = TryToReach(endpoint, patience, "", attempt); !status.ok()) return status;
  return found;
}

}  // namespace planwright
