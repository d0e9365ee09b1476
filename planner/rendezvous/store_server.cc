#include "planner/rendezvous/store_server.h"

#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/rendezvous/proof.h"
#include "planner/rendezvous/socket_address.h"
#include "planner/rendezvous/store_contents.h"
#include "planner/rendezvous/store_protocol.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;

// A descriptor that is closed with this.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

using Id = uint64_t;  // of a connection; never used twice, so that a late event cannot meet another one
constexpr Id kListening = 0, kEnding = 1, kFirstConnection = 2;

struct Connection {
  Connection(Id id, Descriptor socket) : id(id), socket(std::move(socket)), since(Clock::now()) {}

  const Id id;
  const Descriptor socket;
  const Clock::time_point since;
  bool proved = false;
  std::string expected_proof;           // of the client; empty: its hello has not come yet
  std::string in, out;                  // bytes that were read and not used, and that are not written yet
  size_t written = 0;                   // of `out`
  std::optional<StoreMessage> waiting;  // a kGet or kWait some of whose keys do not exist
  size_t present = 0;                   // so many of its keys were there when it was looked at last
  uint32_t events = EPOLLIN;            // for which epoll watches it
};

class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

rlim_t FilesAllowed() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace

// All of it but the constructor and the destructor runs in the thread.
class StoreServer::Loop {
 public:
  Loop(Descriptor listening, Descriptor epoll, Descriptor ending, std::string secret)
      : listening_(std::move(listening)), epoll_(std::move(epoll)), ending_(std::move(ending)),
        secret_(std::move(secret)) {
    const AllSignalsBlocked blocked;  // the new thread inherits it
    thread_ = std::thread([this] { Run(); });
  }
  ~Loop() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(ending_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void Run() {
    Watch(EPOLL_CTL_ADD, listening_.get(), kListening, EPOLLIN);
    Watch(EPOLL_CTL_ADD, ending_.get(), kEnding, EPOLLIN);
    std::vector<epoll_event> events(256);
    for (;;) {
      const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), Patience());
      // Connections first: who has sent its proof must not be taken for the oldest stranger when others come.
      bool connects = false;
      for (int i = 0; i < count; ++i) {
        const Id id = events[i].data.u64;
        if (id == kEnding) return;
        if (id == kListening) connects = true;
        if (id >= kFirstConnection) Serve(id, events[i].events);
      }
      if (connects) Accept();
      CloseLate();
    }
  }

  // Milliseconds until something is due without an event; -1: nothing.
  int Patience() const {
    Clock::time_point next = Clock::time_point::max();
    for (const std::set<Id>* strangers : {&silent_, &greeted_}) {
      if (!strangers->empty()) next = std::min(next, connections_.at(*strangers->begin())->since + kProofPatience);
    }
    if (accepts_again_) next = std::min(next, *accepts_again_);
    if (next == Clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::max<int64_t>(left, 0));
  }

  void CloseLate() {
    const Clock::time_point now = Clock::now();
    for (const std::set<Id>* strangers : {&silent_, &greeted_}) {
      while (!strangers->empty() && connections_.at(*strangers->begin())->since + kProofPatience <= now)
        Close(*strangers->begin());
    }
    if (accepts_again_ && *accepts_again_ <= now) {
      accepts_again_.reset();
      Watch(EPOLL_CTL_MOD, listening_.get(), kListening, EPOLLIN);
    }
  }

  void Accept() {
    // Of the files that this process may open, strangers get a quarter at most.
    const size_t most = std::clamp<size_t>(FilesAllowed() / 4, 1, kMostUnproved);
    for (int i = 0; i < 64; ++i) {  // then those that are connected get their turn
      Descriptor socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.get() < 0) {
        if (errno == EAGAIN || errno == EWOULDBLOCK) return;
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          if (CloseOneStranger()) continue;
          // Nothing can be done but to try again a little later.
          accepts_again_ = Clock::now() + std::chrono::milliseconds(100);
          Watch(EPOLL_CTL_MOD, listening_.get(), kListening, 0);
          return;
        }
        continue;  // this one is gone already, or a signal came
      }
      PrepareConnection(socket.get());
      while (silent_.size() + greeted_.size() >= most) CloseOneStranger();
      auto connection = std::make_unique<Connection>(next_++, std::move(socket));
      if (!Watch(EPOLL_CTL_ADD, connection->socket.get(), connection->id, EPOLLIN)) continue;
      const Id id = connection->id;
      silent_.insert(id);
      connections_.emplace(id, std::move(connection));
      Serve(id, EPOLLIN);  // its hello may have come already
    }
  }

  bool CloseOneStranger() {
    if (silent_.empty() && greeted_.empty()) return false;
    Close(silent_.empty() ? *greeted_.begin() : *silent_.begin());
    return true;
  }

  void Serve(Id id, uint32_t events) {
    const auto at = connections_.find(id);
    if (at == connections_.end()) return;  // closed by an earlier event of this round
    Connection& connection = *at->second;
    bool good = true;
    if (!connection.out.empty()) good = Flush(connection);
    // Nothing is read while a reply is on its way: a client that does not read cannot make the store remember more.
    if (good && connection.out.empty() && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) good = Read(connection);
    if (good) good = Answer(connection);
    if (good) return Rewatch(connection);
    Close(id);
    WakeWaiting();
  }

  // False, here and below: the connection must be closed.
  bool Read(Connection& connection) {
    static thread_local char buffer[1 << 16];
    size_t most = sizeof buffer;
    if (!connection.proved) most = BytesOfHandshake(connection) - connection.in.size();
    const ssize_t got = recv(connection.socket.get(), buffer, most, 0);
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (got == 0) return false;
    connection.in.append(buffer, static_cast<size_t>(got));
    return true;
  }

  // How many bytes its next part of the handshake has. Not one more is read before that is right.
  static size_t BytesOfHandshake(const Connection& connection) {
    return connection.expected_proof.empty() ? kMagicBytes + kNonceBytes : kProofBytes;
  }

  bool Answer(Connection& connection) {
    if (!connection.proved && !Shake(connection)) return false;
    if (!connection.proved) return true;
    while (connection.out.empty()) {
      absl::StatusOr<std::optional<StoreMessage>> request = TakeFrame(connection.in);
      if (!request.ok()) return false;
      if (!*request) return true;
      if (!Do(connection, **std::move(request))) return false;
      WakeWaiting();
    }
    return true;
  }

  bool Shake(Connection& connection) {
    std::string& in = connection.in;
    if (connection.expected_proof.empty()) {
      const size_t magic = std::min(in.size(), kMagicBytes);
      if (in.compare(0, magic, kClientMagic.substr(0, magic)) != 0) return false;
    }
    if (in.size() < BytesOfHandshake(connection)) return true;
    if (!connection.expected_proof.empty()) {
      if (!SameProof(in, connection.expected_proof)) return false;
      connection.proved = true;
      greeted_.erase(connection.id);
      in.clear();
      return true;
    }
    const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
    if (!nonce.ok()) return false;
    silent_.erase(connection.id);
    greeted_.insert(connection.id);
    const std::string_view of_client = std::string_view(in).substr(kMagicBytes);
    connection.expected_proof = ClientProof(secret_, of_client, *nonce);
    connection.out = std::string(kServerMagic) + *nonce + ServerProof(secret_, of_client, *nonce);
    in.clear();
    return Flush(connection);
  }

  bool Do(Connection& connection, StoreMessage request) {
    const auto op = static_cast<StoreOp>(request.kind);
    if (op == StoreOp::kCancel) {
      if (!connection.waiting) return true;  // the reply was on its way already
      Forget(connection);
      connection.waiting.reset();
      return Reply(connection, {static_cast<uint8_t>(StoreReply::kCancelled), 0, {}});
    }
    if (connection.waiting) return false;  // a client asks one thing after the other
    if (op != StoreOp::kGet && op != StoreOp::kWait) return Reply(connection, contents_.Do(request));
    connection.waiting = std::move(request);
    connection.present = 0;
    return TryWaiting(connection);
  }

  // Replies if all keys are there. Else the connection waits for the first key that is not.
  bool TryWaiting(Connection& connection) {
    const std::vector<std::string>& keys = connection.waiting->fields;
    size_t& at = connection.present;
    while (at < keys.size() && contents_.Has(keys[at])) ++at;
    if (at == keys.size()) {  // an earlier one may have been deleted meanwhile
      for (at = 0; at < keys.size() && contents_.Has(keys[at]);) ++at;
    }
    if (at < keys.size()) {
      waiting_[keys[at]].insert(connection.id);
      return true;
    }
    const StoreMessage reply = contents_.Do(*connection.waiting);
    connection.waiting.reset();
    return Reply(connection, reply);
  }

  bool Reply(Connection& connection, const StoreMessage& reply) {
    absl::StatusOr<std::string> frame = FrameOf(reply);
    if (!frame.ok()) frame = FrameOf(Refused(std::string(frame.status().message())));
    connection.out = *std::move(frame);
    return Flush(connection);
  }

  bool Flush(Connection& connection) {
    std::string& out = connection.out;
    while (connection.written < out.size()) {
      const ssize_t sent =
          send(connection.socket.get(), out.data() + connection.written, out.size() - connection.written, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      connection.written += static_cast<size_t>(sent);
    }
    out = std::string();  // gives large memory back
    connection.written = 0;
    return true;
  }

  // Looks again at those that wait for keys that have appeared.
  void WakeWaiting() {
    while (!appeared_.empty()) {
      const auto at = waiting_.find(appeared_.front());
      appeared_.pop_front();
      if (at == waiting_.end()) continue;
      const std::set<Id> ids = std::move(at->second);
      waiting_.erase(at);
      for (const Id id : ids) {
        const auto found = connections_.find(id);
        if (found == connections_.end() || !found->second->waiting) continue;
        if (TryWaiting(*found->second)) {
          Rewatch(*found->second);
        } else {
          Close(id);
        }
      }
    }
  }

  bool Watch(int operation, int descriptor, Id id, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = id;
    return epoll_ctl(epoll_.get(), operation, descriptor, &event) == 0;
  }
  void Rewatch(Connection& connection) {
    const uint32_t events = connection.out.empty() ? EPOLLIN : EPOLLOUT;
    if (events == connection.events) return;
    connection.events = events;
    Watch(EPOLL_CTL_MOD, connection.socket.get(), connection.id, events);
  }

  void Close(Id id) {
    const auto at = connections_.find(id);
    if (at->second->waiting) Forget(*at->second);
    silent_.erase(id);
    greeted_.erase(id);
    connections_.erase(at);
  }
  void Forget(const Connection& connection) {
    const auto at = waiting_.find(connection.waiting->fields[connection.present]);
    if (at == waiting_.end()) return;
    at->second.erase(connection.id);
    if (at->second.empty()) waiting_.erase(at);
  }

  const Descriptor listening_, epoll_, ending_;
  const std::string secret_;
  std::unordered_map<Id, std::unique_ptr<Connection>> connections_;
  std::set<Id> silent_, greeted_;  // not proved yet, without and with a hello; the oldest first
  Id next_ = kFirstConnection;
  std::optional<Clock::time_point> accepts_again_;         // no new connections until then
  std::unordered_map<std::string, std::set<Id>> waiting_;  // by a key that they all lack
  std::deque<std::string> appeared_;                       // keys for which nobody was woken yet
  StoreContents contents_{[this](const std::string& key) {
    if (waiting_.contains(key)) appeared_.push_back(key);
  }};
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(const std::string& address, int port,
                                                                std::string secret) {
  const absl::StatusOr<SocketAddress> wanted = SocketAddress::Parse(address, port);
  if (!wanted.ok()) return wanted.status();
  AllowManyFiles();
  const auto failed = [&](int error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve the store at ", HostAndPort(address, port), ": ",
                     error == EADDRNOTAVAIL ? "this machine does not have that address" : std::strerror(error)));
  };
  Descriptor listening(OpenTcpSocket(wanted->family())), epoll(epoll_create1(EPOLL_CLOEXEC)),
      ending(eventfd(0, EFD_CLOEXEC));
  if (listening.get() < 0 || epoll.get() < 0 || ending.get() < 0) return failed(errno);
  const int on = 1;  // the port of a run that just ended can be taken at once
  if (setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(listening.get(), wanted->pointer(), wanted->size()) != 0 || listen(listening.get(), 4096) != 0)
    return failed(errno);
  const SocketAddress bound = SocketAddress::OfThisEnd(listening.get());
  try {
    auto loop = std::make_unique<Loop>(std::move(listening), std::move(epoll), std::move(ending), std::move(secret));
    return std::unique_ptr<StoreServer>(new StoreServer(bound.address(), bound.port(), std::move(loop)));
  } catch (const std::system_error& error) {  // there is no thread
    return failed(error.code().value());
  }
}

StoreServer::StoreServer(std::string address, int port, std::unique_ptr<Loop> loop)
    : address_(std::move(address)), port_(port), loop_(std::move(loop)) {}
StoreServer::~StoreServer() = default;

}  // namespace planwright
