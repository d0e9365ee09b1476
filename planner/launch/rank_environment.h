// The environment variables of a rank: those that torchrun sets, and the run's nonce.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/launch/rank_program.h"

namespace planwright {

// A TCP port that no other process gets while this lives, on any address of this machine: a socket is bound to it. The
// socket does not listen and lets others bind the port who ask for it by number and share addresses (SO_REUSEADDR), as
// the store of rank 0 does.
class HeldPort {
 public:
  HeldPort() = default;
  HeldPort(int socket, int number) : socket_(socket), number_(number) {}
  HeldPort(HeldPort&& other) noexcept : socket_(std::exchange(other.socket_, -1)), number_(other.number_) {}
  HeldPort& operator=(HeldPort&&) = delete;
  ~HeldPort();

  int number() const { return number_; }

 private:
  int socket_ = -1, number_ = 0;
};

struct World {
  std::string address;  // of the machine of rank 0
  HeldPort port;        // of rank 0's store; held until the run is over
  std::string nonce;    // 128 random bits in hex; ranks of another run have another one
};

// Unavailable if there is no free port.
absl::StatusOr<World> MakeWorld(std::string address);

// What all ranks of a world share: MASTER_ADDR, MASTER_PORT and PLANWRIGHT_NONCE.
Variables VariablesOf(const World& world);

struct RankPlace {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of its machine
};

// Returns `inherited` ("NAME=value") with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and the shared variables
// replaced, without Slurm's numbers of a task (they are the agent's), and with OMP_NUM_THREADS=1 unless it is set.
std::vector<std::string> RankEnvironment(const Variables& shared, const RankPlace& place,
                                         const std::vector<std::string>& inherited);

// The environment of this process, as "NAME=value".
std::vector<std::string> OwnEnvironment();

}  // namespace planwright
