#include "planner/rendezvous/store_client.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/rendezvous/proof.h"
#include "planner/rendezvous/socket_address.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// For the answer to a kCancel: after this the store counts as lost.
constexpr std::chrono::seconds kCancelPatience{10};

// Waits until the socket can be read or written. DeadlineExceeded if that takes too long.
absl::Status WaitUntil(int socket, short event, Clock::time_point deadline) {
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

// A connected socket, or why there is none.
absl::StatusOr<int> ConnectSocket(const std::string& address, int port, Clock::time_point deadline) {
  const absl::StatusOr<SocketAddress> there = SocketAddress::Parse(address, port);
  if (!there.ok()) return there.status();
  const int socket = OpenTcpSocket(there->family());
  if (socket < 0) return absl::UnavailableError(std::strerror(errno));
  absl::Status status;
  if (connect(socket, there->pointer(), there->size()) != 0) {
    int error = errno;
    if (error == EINPROGRESS || error == EINTR) {
      status = WaitUntil(socket, POLLOUT, deadline);
      socklen_t size = sizeof error;
      if (status.ok()) getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (status.ok() && error != 0) status = absl::UnavailableError(std::strerror(error));
  }
  // While nobody listens at a port of this machine, the kernel may give a socket that same port for its own end, and
  // connect it to itself.
  if (status.ok() && SocketAddress::OfThisEnd(socket) == SocketAddress::OfOtherEnd(socket))
    status = absl::UnavailableError(std::strerror(ECONNREFUSED));
  if (!status.ok()) {
    close(socket);
    return status;
  }
  PrepareConnection(socket);
  return socket;
}

std::string Seconds(milliseconds time) { return absl::StrCat(static_cast<double>(time.count()) / 1000, " s"); }

// What is done with a new connection, which it closes, until a deadline.
using Attempt = std::function<absl::Status(int socket, Clock::time_point deadline)>;

// Connects to the addresses in turn until `attempt` succeeds, or `patience` is over. What tells that the wrong program
// answers ends it at once: FailedPrecondition, or InvalidArgument, which becomes Unavailable.
absl::Status TryToReach(const StoreEndpoint& endpoint, milliseconds patience, const char* what,
                        const Attempt& attempt) {
  const Clock::time_point deadline = Clock::now() + patience;
  milliseconds pause(5);
  absl::Status last = absl::UnavailableError("it has no address");
  for (;;) {
    for (size_t i = 0; i < endpoint.addresses.size(); ++i) {
      // An address that is silent must leave time for the others.
      const Clock::time_point now = Clock::now();
      const Clock::time_point own =
          now + (std::max(deadline, now) - now) / static_cast<int64_t>(endpoint.addresses.size() - i);
      // A host that is flooded drops what asks for a connection. The kernel would ask again more and more rarely.
      const absl::StatusOr<int> socket =
          ConnectSocket(endpoint.addresses[i], endpoint.port, std::min(own, now + std::chrono::seconds(2)));
      last = socket.ok() ? attempt(*socket, own) : socket.status();
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

std::string StoreEndpoint::text() const { return HostAndPort(host, port); }

StoreClient::StoreClient(StoreEndpoint endpoint, int socket)
    : endpoint_(std::move(endpoint)), socket_(socket), local_address_(SocketAddress::OfThisEnd(socket).address()) {}
StoreClient::~StoreClient() { close(socket_); }

absl::StatusOr<std::unique_ptr<StoreClient>> StoreClient::Connect(const StoreEndpoint& endpoint,
                                                                  const std::string& secret, milliseconds patience) {
  std::unique_ptr<StoreClient> client;
  const auto shake = [&](int socket, Clock::time_point deadline) {
    client.reset(new StoreClient(endpoint, socket));
    return client->Shake(secret, deadline);
  };
  if (absl::Status status = TryToReach(endpoint, patience, "the store at ", shake); !status.ok()) return status;
  return client;
}

absl::StatusOr<std::string> WaitUntilReachable(const StoreEndpoint& endpoint, milliseconds patience) {
  std::string address;
  const auto take = [&](int socket, Clock::time_point) {
    address = SocketAddress::OfOtherEnd(socket).address();
    close(socket);
    return absl::OkStatus();
  };
  if (absl::Status status = TryToReach(endpoint, patience, "", take); !status.ok()) return status;
  return address;
}

absl::Status StoreClient::Shake(const std::string& secret, Deadline deadline) {
  const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
  if (!nonce.ok()) return nonce.status();
  if (absl::Status sent = Send(std::string(kClientMagic) + *nonce, deadline); !sent.ok()) return sent;
  while (in_.size() < kMagicBytes + kNonceBytes + kProofBytes) {
    if (absl::Status received = Receive(deadline); !received.ok()) return received;
    const size_t magic = std::min(in_.size(), kMagicBytes);
    if (in_.compare(0, magic, kServerMagic.substr(0, magic)) != 0)
      return absl::InvalidArgumentError("what answers there is not the store of a run");
  }
  const std::string_view of_server = std::string_view(in_).substr(kMagicBytes, kNonceBytes);
  const std::string_view proof = std::string_view(in_).substr(kMagicBytes + kNonceBytes);
  if (!SameProof(proof, ServerProof(secret, *nonce, of_server)))
    return absl::FailedPreconditionError("belongs to another run: it does not know the secret of this one");
  const std::string own = ClientProof(secret, *nonce, of_server);
  in_.clear();
  // The server may close the connection for the sake of others until the proof has come: an answer shows that it has.
  const absl::StatusOr<std::string> question = FrameOf({static_cast<uint8_t>(StoreOp::kCheck), 0, {}});
  if (absl::Status sent = Send(own + *question, deadline); !sent.ok()) return sent;
  const absl::StatusOr<StoreMessage> answer = ReceiveReply(deadline);
  return absl::IsInvalidArgument(answer.status()) ? absl::UnavailableError(answer.status().message()) : answer.status();
}

absl::Status StoreClient::Send(const std::string& bytes, Deadline deadline) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent > 0) done += static_cast<size_t>(sent);
    if (sent >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return absl::UnavailableError(std::strerror(errno));
    if (absl::Status ready = WaitUntil(socket_, POLLOUT, deadline); !ready.ok()) return ready;
  }
  return absl::OkStatus();
}

// Appends what has come to in_, at least one byte.
absl::Status StoreClient::Receive(Deadline deadline) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
    if (got > 0) {
      in_.append(buffer, static_cast<size_t>(got));
      return absl::OkStatus();
    }
    if (got == 0) return absl::UnavailableError("it closed the connection");
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return absl::UnavailableError(std::strerror(errno));
    if (absl::Status ready = WaitUntil(socket_, POLLIN, deadline); !ready.ok()) return ready;
  }
}

absl::StatusOr<StoreMessage> StoreClient::ReceiveReply(Deadline deadline) {
  for (;;) {
    absl::StatusOr<std::optional<StoreMessage>> reply = TakeFrame(in_);
    if (!reply.ok()) return reply.status();
    if (*reply) return **std::move(reply);
    if (absl::Status received = Receive(deadline); !received.ok()) return received;
  }
}

absl::Status StoreClient::Break(const absl::Status& why) {
  broken_ = absl::UnavailableError(absl::StrCat("the store at ", endpoint_.text(), " is lost: ", why.message()));
  shutdown(socket_, SHUT_RDWR);
  return broken_;
}

absl::StatusOr<StoreMessage> StoreClient::Ask(const StoreMessage& request, milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) return broken_;
  const absl::StatusOr<std::string> frame = FrameOf(request);
  if (!frame.ok()) return frame.status();
  const Clock::time_point deadline = Clock::now() + timeout;
  if (absl::Status sent = Send(*frame, deadline); !sent.ok()) return Break(sent);
  absl::StatusOr<StoreMessage> reply = ReceiveReply(deadline);
  const bool waits =
      request.kind == static_cast<uint8_t>(StoreOp::kGet) || request.kind == static_cast<uint8_t>(StoreOp::kWait);
  if (absl::IsDeadlineExceeded(reply.status()) && waits) {
    const Clock::time_point soon = Clock::now() + kCancelPatience;
    if (absl::Status sent = Send(*FrameOf({static_cast<uint8_t>(StoreOp::kCancel), 0, {}}), soon); !sent.ok())
      return Break(sent);
    reply = ReceiveReply(soon);  // the keys may have come at the last moment
  }
  if (!reply.ok()) return Break(reply.status());
  switch (static_cast<StoreReply>(reply->kind)) {
    case StoreReply::kDone: return reply;
    case StoreReply::kCancelled: {
      const std::vector<std::string>& keys = request.fields;
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", Seconds(timeout), " at the store ", endpoint_.text(), " for '", keys.empty() ? "" : keys[0], "'",
          keys.size() > 1 ? absl::StrCat(" or one of ", keys.size() - 1, " other keys") : ""));
    }
    case StoreReply::kRefused:
      return absl::FailedPreconditionError(absl::StrCat(
          "the store at ", endpoint_.text(), " refuses a request: ", reply->fields.empty() ? "" : reply->fields[0]));
  }
  return Break(absl::InvalidArgumentError("it does not follow the protocol"));
}

}  // namespace planwright
