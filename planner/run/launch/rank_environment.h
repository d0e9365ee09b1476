// The environment variables of a rank: those that torchrun sets, and the name and the secret of the run.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/run/launch/rank_program.h"
#include "planner/wire/rendezvous/store_server.h"

namespace planwright {

struct World {
  std::unique_ptr<StoreServer> store;  // that the ranks meet at; serves until this is destroyed
  std::string nonce;                   // 128 random bits in hex, the name of the run
  std::string secret;                  // of the store; never printed
  std::string interface;               // of Gloo and NCCL; empty: they choose
};

// Starts the store at a numeric address of this machine. `key`: RankStarter::key. Unavailable if it cannot be served
// there.
absl::StatusOr<World> MakeWorld(const std::string& address, std::string interface, const std::string& key);

inline constexpr char kSecretVariable[] = "PLANWRIGHT_SECRET", kLifeVariable[] = "PLANWRIGHT_NONCE";

// The secret of the store of one life, in hex: HMAC-SHA256 of its name (World::nonce) with a key. Head and agents make
// it of the key that both have, so it does not travel.
std::string SecretOfLife(std::string_view key, std::string_view life);

// What all ranks of a world share: MASTER_ADDR, MASTER_PORT, PLANWRIGHT_NONCE and PLANWRIGHT_SECRET, and, with an
// interface, GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME.
Variables VariablesOf(const World& world);

struct RankNumbers {
  int rank = 0, world_size = 1;
  int local_rank = 0, local_size = 1;  // among the ranks of its machine
  bool own_cores = false;              // it is bound to cores, which no other rank of the run has
};

// Returns `inherited` ("NAME=value") with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and the shared variables
// replaced, without Slurm's numbers of a task and another PLANWRIGHT_TIMEOUT_SECONDS than a shared one (they are the
// agent's), and with OMP_NUM_THREADS=1 unless it is set. A rank with own cores has PLANWRIGHT_OWN_CORES=1: else it
// shares the cores on which it may run with the other ranks.
std::vector<std::string> RankEnvironment(const Variables& shared, const RankNumbers& numbers,
                                         const std::vector<std::string>& inherited);

// The environment of this process, as "NAME=value".
std::vector<std::string> OwnEnvironment();

}  // namespace planwright
