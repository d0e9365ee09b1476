// The head's side of a run on several nodes: agents (agent.h) connect to it, and it starts, signals and watches the
// ranks through them.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/run/launch/rank_starter.h"
#include "planner/wire/connection/descriptor.h"
#include "planner/wire/connection/proven_server.h"

namespace planwright {

struct FleetOptions {
  std::string address = "127.0.0.1";  // of this machine, which agents connect to
  std::string file;                   // where agents read how to find the head; only its owner can read it
  // A node that says nothing for so long is lost, and so is a head for its agents.
  std::chrono::milliseconds silence{20000};
  // Called in each turn of waiting for agents or their messages, and so once in a beat (wire.h) or more often. May be
  // empty.
  std::function<void()> each_turn = {};
};

class Fleet : public RankStarter, private ProvenServer::User {
 public:
  // Listens at a free port of the address, makes a secret, and writes both into the file. Unavailable if that fails;
  // AlreadyExists if another head has the file (it holds a lock on FILE.lock).
  static absl::StatusOr<std::unique_ptr<Fleet>> Open(FleetOptions options);
  // Ends all agents.
  ~Fleet() override;

  // Waits until so many agents have come. Unavailable, with the nodes that came, after `patience`, or as soon as
  // `given_up` says why no more will come. Aborted: this program received `signal` meanwhile.
  absl::Status WaitForAgents(int count, std::chrono::milliseconds patience,
                             const std::function<std::string()>& given_up, int& signal);

  std::string address() const override { return options_.address; }
  int nodes() override;
  // The secret of the file: head and agents both have it.
  const std::string& key() const override { return secret_; }
  // The first nodes, in the order of their numbers, get the ranks.
  absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override;
  int Pause(std::chrono::milliseconds time) override;

 private:
  friend class FleetProcesses;
  using Clock = std::chrono::steady_clock;

  struct Agent {
    ProvenServer::Id id = 0;
    int node = -1;     // its number; -1: its hello has not come yet
    std::string name;  // "node2 (10.1.2.3)"
    std::string lost;  // why it is lost; empty: it is not
    Clock::time_point heard;
    std::vector<nlohmann::json> messages;  // that came and are not read yet
    size_t unread = 0;                     // bytes of these messages
  };

  explicit Fleet(FleetOptions options) : options_(std::move(options)) {}
  // Waits for connections, messages and the extra descriptor, at most until then, and reads a turn of what is there.
  void Poll(int extra_fd, Clock::time_point until);
  void Proved(ProvenServer::Id id, const std::string& address) override;
  std::string Take(ProvenServer::Id id, std::string& in) override;
  void Closed(ProvenServer::Id id, const std::string& why) override;
  std::string Greet(Agent& agent, const nlohmann::json& hello);
  void Send(const Agent& agent, const nlohmann::json& message);
  // The messages of an agent that came and were not read yet.
  std::vector<nlohmann::json> TakeMessagesOf(Agent& agent);
  std::vector<Agent*> Joined();  // that are not lost, by node

  std::string LockPath() const { return options_.file + ".lock"; }

  const FleetOptions options_;
  std::string secret_;
  Descriptor lock_;
  std::unique_ptr<ProvenServer> server_;
  bool wrote_ = false;  // the file
  Clock::time_point next_beat_{};
  Clock::time_point polled_ = Clock::now();
  bool came_late_ = false;         // there are messages that Poll need not wait for
  Clock::duration stood_still_{};  // between the last two calls of Poll
  int lives_ = 0;                  // FleetProcesses that exist: without one, nobody reads messages
  std::list<Agent> agents_;        // whose connection is proved; those that are lost stay, as lives know them
};

}  // namespace planwright
