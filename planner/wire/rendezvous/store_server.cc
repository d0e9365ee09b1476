#include "planner/wire/rendezvous/store_server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
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
#include "planner/wire/connection/descriptor.h"
#include "planner/wire/connection/proven_server.h"
#include "planner/wire/connection/socket_address.h"
#include "planner/wire/rendezvous/store_contents.h"
#include "planner/wire/rendezvous/store_protocol.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using Id = ProvenServer::Id;

// A kGet or kWait some of whose keys do not exist.
struct Wait {
  StoreMessage request;
  size_t present = 0;  // so many of its keys were there when it was looked at last
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

}  // namespace

// All of it but the constructor and the destructor runs in the thread.
class StoreServer::Loop : private ProvenServer::User {
 public:
  Loop(std::unique_ptr<ProvenServer> server, Descriptor ending)
      : server_(std::move(server)), ending_(std::move(ending)) {
    const AllSignalsBlocked blocked;  // the new thread inherits it
    thread_ = std::thread([this] { Run(); });
  }
  ~Loop() override {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(ending_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void Run() {
    for (;;) {
      pollfd watched[] = {{ending_.get(), POLLIN, 0}, {server_->fd(), POLLIN, 0}};
      poll(watched, std::size(watched), Patience());
      if (watched[0].revents != 0) return;
      server_->Serve(*this);
    }
  }

  // Milliseconds until something is due without an event; -1: nothing.
  int Patience() const {
    const std::optional<Clock::time_point> due = server_->due();
    if (!due) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count();
    return static_cast<int>(std::clamp<int64_t>(left, 0, INT_MAX));
  }

  void Proved(Id, const std::string&) override {}

  std::string Take(Id id, std::string& in) override {
    while (!server_->HasUnsent(id)) {  // a client that does not read its reply gets no other
      absl::StatusOr<std::optional<StoreMessage>> request = TakeFrame(in);
      if (!request.ok()) return std::string(request.status().message());
      if (!*request) break;
      if (!Do(id, **std::move(request))) return "it does not follow the protocol";
      WakeWaiting();
    }
    return "";
  }

  void Closed(Id id, const std::string&) override {
    Forget(id);
    WakeWaiting();
  }

  // False: the client does not follow the protocol.
  bool Do(Id id, StoreMessage request) {
    const auto op = static_cast<StoreOp>(request.kind);
    const bool waits = waits_.contains(id);
    if (op == StoreOp::kCancel) {
      if (!waits) return true;  // the reply was on its way already
      Forget(id);
      Reply(id, {static_cast<uint8_t>(StoreReply::kCancelled), 0, {}});
      return true;
    }
    if (waits) return false;  // a client asks one thing after the other
    if (op != StoreOp::kGet && op != StoreOp::kWait) {
      Reply(id, contents_.Do(request));
    } else {
      TryWaiting(id, waits_.emplace(id, Wait{std::move(request)}).first->second);
    }
    return true;
  }

  // Replies if all keys are there. Else the connection waits for the first key that is not.
  void TryWaiting(Id id, Wait& wait) {
    const std::vector<std::string>& keys = wait.request.fields;
    size_t& at = wait.present;
    while (at < keys.size() && contents_.Has(keys[at])) ++at;
    if (at == keys.size()) {  // an earlier one may have been deleted meanwhile
      for (at = 0; at < keys.size() && contents_.Has(keys[at]);) ++at;
    }
    if (at < keys.size()) {
      waiting_[keys[at]].insert(id);
      return;
    }
    const StoreMessage reply = contents_.Do(wait.request);
    waits_.erase(id);
    Reply(id, reply);
  }

  void Reply(Id id, const StoreMessage& reply) {
    absl::StatusOr<std::string> frame = FrameOf(reply);
    if (!frame.ok()) frame = FrameOf(Refused(std::string(frame.status().message())));
    server_->Send(id, *frame);
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
        if (const auto wait = waits_.find(id); wait != waits_.end()) TryWaiting(id, wait->second);
      }
    }
  }

  void Forget(Id id) {
    const auto wait = waits_.find(id);
    if (wait == waits_.end()) return;
    const auto at = waiting_.find(wait->second.request.fields[wait->second.present]);
    waits_.erase(wait);
    if (at == waiting_.end()) return;
    at->second.erase(id);
    if (at->second.empty()) waiting_.erase(at);
  }

  const std::unique_ptr<ProvenServer> server_;
  const Descriptor ending_;
  std::unordered_map<Id, Wait> waits_;
  std::unordered_map<std::string, std::set<Id>> waiting_;  // by a key that they all lack
  std::deque<std::string> appeared_;                       // keys for which nobody was woken yet
  StoreContents contents_{[this](const std::string& key) {
    if (waiting_.contains(key)) appeared_.push_back(key);
  }};
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(const std::string& address, int port,
                                                                std::string secret) {
  const auto failed = [&](absl::string_view why) {
    return absl::UnavailableError(absl::StrCat("cannot serve the store at ", HostAndPort(address, port), ": ", why));
  };
  absl::StatusOr<std::unique_ptr<ProvenServer>> server =
      ProvenServer::Listen(address, port,
                           {.purpose = kStorePurpose,
                            .secret = std::move(secret),
                            .patience = kProofPatience,
                            .most_in = kMostFrameBytes + kBytesOfATurn,
                            .most_unsent = 0});
  if (absl::IsInvalidArgument(server.status())) return server.status();
  if (!server.ok()) return failed(server.status().message());
  Descriptor ending(eventfd(0, EFD_CLOEXEC));
  if (ending.get() < 0) return failed(std::strerror(errno));
  const std::string bound = (*server)->address();
  const int bound_port = (*server)->port();
  try {
    auto loop = std::make_unique<Loop>(*std::move(server), std::move(ending));
    return std::unique_ptr<StoreServer>(new StoreServer(bound, bound_port, std::move(loop)));
  } catch (const std::system_error& error) {  // there is no thread
    return failed(std::strerror(error.code().value()));
  }
}

StoreServer::StoreServer(std::string address, int port, std::unique_ptr<Loop> loop)
    : address_(std::move(address)), port_(port), loop_(std::move(loop)) {}
StoreServer::~StoreServer() = default;

}  // namespace planwright
