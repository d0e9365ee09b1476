// Listens for connections, and lets in who proves that it knows a secret (docs/rendezvous.md#protocol). Whoever has not
// done so yet is a stranger: it is read no further than its handshake is long, and is closed soon.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/wire/connection/byte_stream.h"
#include "planner/wire/connection/descriptor.h"
#include "planner/wire/connection/proof.h"

namespace planwright {

// The most connections of strangers (or a quarter of the files that the process may open). If more come, first those go
// who have said nothing yet, the oldest first.
inline constexpr size_t kMostStrangers = 4096;

struct ProvenServerOptions {
  Purpose purpose;
  std::string secret;
  std::chrono::milliseconds patience;  // a stranger who takes longer to prove itself is closed
  size_t most_in = 0;                  // bytes that came from one connection and are not used; no more are read
  size_t most_unsent = 0;              // nothing is read from who has not taken more than so many bytes
};

// Nothing here blocks, and one thread does it all: it waits for fd() and due(), and calls Serve.
class ProvenServer {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = uint64_t;  // of a connection; never used twice

  // Who answers. It may call Send and Close at any time.
  class User {
   public:
    virtual ~User() = default;
    // A new connection; `address`: of the other end, such as "10.0.0.7".
    virtual void Proved(Id id, const std::string& address) = 0;
    // Uses what it can of the bytes that came, and takes them away from the front. Returns why the connection is to be
    // closed; empty: it is good.
    virtual std::string Take(Id id, std::string& in) = 0;
    // A proved connection is gone. Not called after Close.
    virtual void Closed(Id id, const std::string& why) = 0;
  };

  // Listens at a numeric address of this machine and a port; 0: a free one. Raises this process's soft limit of open
  // files to the hard one. InvalidArgument if there is no such address; Unavailable, in words that follow "cannot ...
  // at ADDRESS:PORT: ", if it cannot listen there.
  static absl::StatusOr<std::unique_ptr<ProvenServer>> Listen(const std::string& address, int port,
                                                              ProvenServerOptions options);

  const std::string& address() const { return address_; }
  int port() const { return port_; }
  size_t strangers() const { return silent_.size() + greeted_.size(); }
  // Bytes of all connections that came and are not used, or wait to be sent.
  size_t bytes_held() const;

  // Can be read when there is something to do.
  int fd() const { return epoll_.get(); }
  // When something is to do though fd() cannot be read; nullopt: never.
  std::optional<Clock::time_point> due() const;
  // Does what can be done now: one turn for each connection.
  void Serve(User& user);

  // Sends bytes to a proved connection, now or later.
  void Send(Id id, std::string_view bytes);
  // Whether bytes wait to be sent. False if there is no such connection.
  bool HasUnsent(Id id) const;
  // Offers the user the bytes again that it has left.
  void Retake(Id id, User& user);
  void Close(Id id);

 private:
  struct Connection {
    ByteStream stream;
    Clock::time_point since;
    std::string address;  // of the other end
    bool proved = false;
    std::string expected_proof;  // of the client; empty: its hello has not come yet
    uint32_t events = 0;         // for which epoll watches it
    std::string lost;            // why it must be closed; empty: it is good
  };
  ProvenServer(std::string address, int port, ProvenServerOptions options, Descriptor listening, Descriptor epoll);

  void Turn(Id id, uint32_t events, User& user);
  void Shake(Id id, Connection& connection, User& user);
  void Take(Id id, Connection& connection, User& user);
  bool Reads(Connection& connection) const;
  void Accept(User& user);
  bool CloseOneStranger();
  void CloseLate();
  void CloseLost(User& user);
  void Lose(Id id, Connection& connection, std::string why);
  void Erase(Id id);
  bool Watch(int operation, int descriptor, Id id, uint32_t events);
  void Rewatch(Id id, Connection& connection);

  const std::string address_;
  const int port_;
  const ProvenServerOptions options_;
  const Descriptor listening_, epoll_;
  std::unordered_map<Id, Connection> connections_;
  std::set<Id> silent_, greeted_;  // strangers, without and with a hello; the oldest first
  std::vector<Id> lost_;           // to be closed
  Id next_ = 1;
  std::optional<Clock::time_point> accepts_again_;  // no new connections until then
};

}  // namespace planwright
