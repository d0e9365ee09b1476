// Starts all ranks on this machine, however many nodes the plan is for.
#pragma once

#include <climits>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/local_processes.h"
#include "planner/run/launch/rank_starter.h"
#include "planner/wire/connection/proof.h"
#include "planner/wire/rendezvous/interface_address.h"

namespace planwright {

// Where the store of a run on this machine listens: at the address of the recipe's launch.interface, or at 127.0.0.1
// if it is empty. InvalidArgument if this machine has no such interface.
inline absl::StatusOr<std::string> LocalStoreAddress(const std::string& interface) {
  if (interface.empty()) return "127.0.0.1";
  absl::StatusOr<std::string> address = InterfaceAddress(interface);
  if (address.ok()) return address;
  return absl::InvalidArgumentError("launch.interface: " + std::string(address.status().message()));
}

class LocalStarter : public RankStarter {
 public:
  // With the store at LocalStoreAddress(interface) and a key of its own. Errors are those of both.
  static absl::StatusOr<LocalStarter> Open(const std::string& interface) {
    absl::StatusOr<std::string> address = LocalStoreAddress(interface);
    if (!address.ok()) return address.status();
    absl::StatusOr<std::string> key = MakeSecret();
    if (!key.ok()) return key.status();
    return LocalStarter(*std::move(address), *std::move(key));
  }
  // `address`: of this machine, for the store. `key`: any secret.
  LocalStarter(std::string address, std::string key) : address_(std::move(address)), key_(std::move(key)) {}

  std::string address() const override { return address_; }
  const std::string& key() const override { return key_; }
  int nodes() override { return INT_MAX; }
  absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override {
    RankProgram here = program;
    here.ranks_per_node = program.world_size;
    const std::vector<int> ranks = RanksOfNode(here, 0);
    return LocalProcesses::Start(CommandsOf(here, ranks), ranks, program.run_dir, program.forks);
  }
  int Pause(std::chrono::milliseconds time) override { return HeldSignals().WaitFor(time); }

 private:
  const std::string address_, key_;
};

}  // namespace planwright
