// Starts all ranks on this machine, however many nodes the plan is for.
#pragma once

#include <climits>
#include <memory>
#include <string>
#include <utility>

#include "planner/launch/local_processes.h"
#include "planner/launch/rank_starter.h"

namespace planwright {

class LocalStarter : public RankStarter {
 public:
  // `address`: of this machine, for the store.
  explicit LocalStarter(std::string address) : address_(std::move(address)) {}

  std::string address() const override { return address_; }
  int nodes() override { return INT_MAX; }
  absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override {
    RankProgram here = program;
    here.ranks_per_node = program.world_size;
    const std::vector<int> ranks = RanksOfNode(here, 0);
    return LocalProcesses::Start(CommandsOf(here, ranks), ranks, program.run_dir);
  }

 private:
  const std::string address_;
};

}  // namespace planwright
