#include "planner/wire/connection/proven_server.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/process/inherited.h"
#include "planner/wire/connection/socket_address.h"

namespace planwright {
namespace {

constexpr ProvenServer::Id kListening = 0;
constexpr int kAcceptedInATurn = 64;
constexpr std::chrono::milliseconds kPauseWithoutFiles(100);

rlim_t FilesAllowed() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProvenServer>> ProvenServer::Listen(const std::string& address, int port,
                                                                   ProvenServerOptions options) {
  const absl::StatusOr<SocketAddress> wanted = SocketAddress::Parse(address, port);
  if (!wanted.ok()) return wanted.status();
  AllowManyFiles();
  Descriptor listening(OpenTcpSocket(wanted->family())), epoll(epoll_create1(EPOLL_CLOEXEC));
  const int on = 1;  // the port of a run that just ended can be taken at once
  if (listening.get() < 0 || epoll.get() < 0 ||
      setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(listening.get(), wanted->pointer(), wanted->size()) != 0 || listen(listening.get(), 4096) != 0) {
    return absl::UnavailableError(errno == EADDRNOTAVAIL ? "this machine does not have that address"
                                                         : std::strerror(errno));
  }
  const SocketAddress bound = SocketAddress::OfThisEnd(listening.get());
  std::unique_ptr<ProvenServer> server(
      new ProvenServer(bound.address(), bound.port(), std::move(options), std::move(listening), std::move(epoll)));
  if (!server->Watch(EPOLL_CTL_ADD, server->listening_.get(), kListening, EPOLLIN))
    return absl::UnavailableError(std::strerror(errno));
  return server;
}

ProvenServer::ProvenServer(std::string address, int port, ProvenServerOptions options, Descriptor listening,
                           Descriptor epoll)
    : address_(std::move(address)), port_(port), options_(std::move(options)), listening_(std::move(listening)),
      epoll_(std::move(epoll)) {}

size_t ProvenServer::bytes_held() const {
  size_t bytes = 0;
  for (const auto& [id, connection] : connections_) bytes += connection.stream.in().size() + connection.stream.unsent();
  return bytes;
}

std::optional<ProvenServer::Clock::time_point> ProvenServer::due() const {
  if (!lost_.empty()) return Clock::now();
  std::optional<Clock::time_point> next = accepts_again_;
  for (const std::set<Id>* strangers : {&silent_, &greeted_}) {
    if (strangers->empty()) continue;
    const Clock::time_point late = connections_.at(*strangers->begin()).since + options_.patience;
    next = std::min(next.value_or(late), late);
  }
  return next;
}

void ProvenServer::Serve(User& user) {
  std::vector<epoll_event> events(connections_.size() + 1);
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  // Connections first: who has sent its proof must not be taken for the oldest stranger when others come.
  bool connects = false;
  for (int i = 0; i < count; ++i) {
    const Id id = events[i].data.u64;
    if (id == kListening) {
      connects = true;
    } else {
      Turn(id, events[i].events, user);
    }
  }
  if (connects) Accept(user);
  CloseLate();
  CloseLost(user);
}

void ProvenServer::Turn(Id id, uint32_t events, User& user) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.lost.empty()) return;  // closed by an earlier event of this round
  Connection& connection = at->second;
  if (connection.stream.unsent() > 0) {
    if (const absl::Status sent = connection.stream.Flush(); !sent.ok())
      return Lose(id, connection, std::string(sent.message()));
  }
  if (Reads(connection) && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    std::string& in = connection.stream.in();
    // A stranger may send the next part of the handshake, and not one byte more before that is right.
    const size_t part = connection.expected_proof.empty() ? kMagicBytes + kNonceBytes : kProofBytes;
    const absl::Status received = connection.stream.Receive((connection.proved ? options_.most_in : part) - in.size());
    if (!received.ok()) return Lose(id, connection, std::string(received.message()));
  }
  if (connection.proved) return Take(id, connection, user);
  Shake(id, connection, user);
}

// A client that does not read what it asked for cannot make the server remember more.
bool ProvenServer::Reads(Connection& connection) const {
  return !connection.proved ||
         (connection.stream.unsent() <= options_.most_unsent && connection.stream.in().size() < options_.most_in);
}

void ProvenServer::Shake(Id id, Connection& connection, User& user) {
  const auto refuse = [&] { Lose(id, connection, "it does not know the secret"); };
  std::string& in = connection.stream.in();
  if (connection.expected_proof.empty()) {
    const size_t magic = std::min(in.size(), kMagicBytes);
    if (in.compare(0, magic, options_.purpose.client_magic.substr(0, magic)) != 0) return refuse();
    if (in.size() < kMagicBytes + kNonceBytes) return;
    const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
    if (!nonce.ok()) return refuse();
    silent_.erase(id);
    greeted_.insert(id);
    const std::string_view of_client = std::string_view(in).substr(kMagicBytes);
    connection.expected_proof = ClientProof(options_.purpose, options_.secret, of_client, *nonce);
    connection.stream.Add(options_.purpose.server_magic);
    connection.stream.Add(*nonce);
    connection.stream.Add(ServerProof(options_.purpose, options_.secret, of_client, *nonce));
  } else {
    if (in.size() < kProofBytes) return;
    if (!SameProof(in, connection.expected_proof)) return refuse();
    greeted_.erase(id);
    connection.proved = true;
    connection.stream.Add(std::string_view(&kWelcome, 1));
  }
  in.clear();
  if (const absl::Status sent = connection.stream.Flush(); !sent.ok())
    return Lose(id, connection, std::string(sent.message()));
  if (connection.proved) user.Proved(id, connection.address);
  if (connection.lost.empty()) Rewatch(id, connection);
}

void ProvenServer::Take(Id id, Connection& connection, User& user) {
  std::string why = user.Take(id, connection.stream.in());
  if (!connection.lost.empty()) return;
  if (!why.empty()) return Lose(id, connection, std::move(why));
  Rewatch(id, connection);
}

void ProvenServer::Retake(Id id, User& user) {
  const auto at = connections_.find(id);
  if (at != connections_.end() && at->second.lost.empty() && !at->second.stream.in().empty())
    Take(id, at->second, user);
}

void ProvenServer::Send(Id id, std::string_view bytes) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.lost.empty()) return;
  at->second.stream.Add(bytes);
  if (const absl::Status sent = at->second.stream.Flush(); !sent.ok())
    return Lose(id, at->second, std::string(sent.message()));
  Rewatch(id, at->second);
}

bool ProvenServer::HasUnsent(Id id) const {
  const auto at = connections_.find(id);
  return at != connections_.end() && at->second.stream.unsent() > 0;
}

void ProvenServer::Accept(User& user) {
  const size_t most = std::clamp<size_t>(FilesAllowed() / 4, 1, kMostStrangers);
  for (int i = 0; i < kAcceptedInATurn; ++i) {  // then those that are connected get their turn
    Descriptor socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (CloseOneStranger()) continue;
        // Nothing can be done but to try again a little later.
        accepts_again_ = Clock::now() + kPauseWithoutFiles;
        Watch(EPOLL_CTL_MOD, listening_.get(), kListening, 0);
        return;
      }
      continue;  // this one is gone already, or a signal came
    }
    PrepareConnection(socket.get());
    while (strangers() >= most) CloseOneStranger();
    const Id id = next_;
    if (!Watch(EPOLL_CTL_ADD, socket.get(), id, EPOLLIN)) continue;
    ++next_;
    std::string address = SocketAddress::OfOtherEnd(socket.get()).address();
    connections_.emplace(id, Connection{.stream = ByteStream(std::move(socket)),
                                        .since = Clock::now(),
                                        .address = std::move(address),
                                        .expected_proof = "",
                                        .events = EPOLLIN,
                                        .lost = ""});
    silent_.insert(id);
    Turn(id, EPOLLIN, user);  // its hello may have come already
  }
}

bool ProvenServer::CloseOneStranger() {
  if (strangers() == 0) return false;
  Erase(silent_.empty() ? *greeted_.begin() : *silent_.begin());
  return true;
}

void ProvenServer::CloseLate() {
  const Clock::time_point now = Clock::now();
  for (const std::set<Id>* strangers : {&silent_, &greeted_}) {
    while (!strangers->empty() && connections_.at(*strangers->begin()).since + options_.patience <= now)
      Erase(*strangers->begin());
  }
  if (accepts_again_ && *accepts_again_ <= now) {
    accepts_again_.reset();
    Watch(EPOLL_CTL_MOD, listening_.get(), kListening, EPOLLIN);
  }
}

// Not closed at once: the connection may be in use where this is found.
void ProvenServer::Lose(Id id, Connection& connection, std::string why) {
  connection.lost = std::move(why);
  lost_.push_back(id);
}

void ProvenServer::CloseLost(User& user) {
  while (!lost_.empty()) {
    const Id id = lost_.back();
    lost_.pop_back();
    const auto at = connections_.find(id);
    if (at == connections_.end()) continue;
    const std::string why = std::move(at->second.lost);
    const bool proved = at->second.proved;
    Erase(id);
    if (proved) user.Closed(id, why);
  }
}

void ProvenServer::Close(Id id) {
  const auto at = connections_.find(id);
  if (at == connections_.end()) return;
  at->second.proved = false;  // its user knows
  if (at->second.lost.empty()) Lose(id, at->second, "it is not wanted");
  shutdown(at->second.stream.fd(), SHUT_RDWR);  // the other end hears it now
}

void ProvenServer::Erase(Id id) {
  silent_.erase(id);
  greeted_.erase(id);
  connections_.erase(id);
}

bool ProvenServer::Watch(int operation, int descriptor, Id id, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
}

void ProvenServer::Rewatch(Id id, Connection& connection) {
  const uint32_t events = (Reads(connection) ? EPOLLIN : 0u) | (connection.stream.unsent() > 0 ? EPOLLOUT : 0u);
  if (events == connection.events) return;
  connection.events = events;
  Watch(EPOLL_CTL_MOD, connection.stream.fd(), id, events);
}

}  // namespace planwright
