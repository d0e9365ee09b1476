// The environment variables of a rank: those that torchrun sets, and the name and the secret of the run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/rendezvous/store_server.h"

namespace planwright {

struct LocalWorld {
  int world_size = 1;
  std::unique_ptr<StoreServer> store;  // that the ranks meet at; serves until this is destroyed
  std::string nonce;                   // 128 random bits in hex, the name of the run
  std::string secret;                  // of the store; never printed
  std::string interface;               // of the plan; empty: the loopback
};

// Starts the store at the address of a network interface; empty: 127.0.0.1. InvalidArgument if there is no such
// interface (InterfaceAddress). Unavailable if the store cannot be served.
absl::StatusOr<LocalWorld> MakeLocalWorld(int world_size, const std::string& interface);

// What all ranks of a world share: MASTER_ADDR, MASTER_PORT, PLANWRIGHT_NONCE and PLANWRIGHT_SECRET, and, with an
// interface, GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME.
std::map<std::string, std::string, std::less<>> VariablesOf(const LocalWorld& world);

// Returns `inherited` ("NAME=value") with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE and the shared variables
// replaced, and with OMP_NUM_THREADS=1 unless it is set.
std::vector<std::string> RankEnvironment(const LocalWorld& world, int rank, const std::vector<std::string>& inherited);

// The environment of this process, as "NAME=value".
std::vector<std::string> OwnEnvironment();

}  // namespace planwright
