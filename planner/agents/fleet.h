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
#include "planner/agents/wire.h"
#include "planner/launch/rank_starter.h"

namespace planwright {

struct FleetOptions {
  std::string address = "127.0.0.1";  // of this machine, which agents connect to
  std::string file;                   // where agents read how to find the head; only its owner can read it
  // A node that says nothing for so long is lost, and so is a head for its agents.
  std::chrono::milliseconds silence{20000};
};

class Fleet : public RankStarter {
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
  // The first nodes, in the order of their numbers, get the ranks.
  absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override;
  int Pause(std::chrono::milliseconds time) override;

 private:
  friend class FleetProcesses;
  using Clock = std::chrono::steady_clock;

  struct Agent {
    Wire wire;
    bool proved = false;
    std::string nonce;  // ours, for its proof
    int node = -1;      // its number
    std::string name;   // "node2 (10.1.2.3)"
    std::string lost;   // why it is lost; empty: it is not
    Clock::time_point since, heard;
    std::vector<nlohmann::json> messages;  // that came and are not read yet
  };

  explicit Fleet(FleetOptions options) : options_(std::move(options)) {}
  // Waits for connections, messages and the extra descriptor, at most until then, and reads what is there.
  void Poll(int extra_fd, Clock::time_point until);
  void Accept();
  void Prove(Agent& agent);
  void DropStrangers();
  std::vector<Agent*> Proved();  // that are not lost, by node

  const FleetOptions options_;
  std::string secret_;
  int listens_ = -1, lock_ = -1;
  bool wrote_ = false;  // the file
  Clock::time_point next_beat_{};
  Clock::time_point polled_ = Clock::now();
  std::list<Agent> agents_;
};

}  // namespace planwright
