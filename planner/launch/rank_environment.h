// The environment variables of a rank: those that torchrun sets, and the run's nonce.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct LocalWorld {
  int world_size = 1;
  int port = 0;       // of rank 0's store, on 127.0.0.1
  std::string nonce;  // 128 random bits in hex; ranks of another run have another one
};

// Picks a port that is free now. Another process can take it before rank 0 binds it; rank 0 then fails.
absl::StatusOr<LocalWorld> MakeLocalWorld(int world_size);

// Returns `inherited` ("NAME=value") with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
// PLANWRIGHT_NONCE replaced, and with OMP_NUM_THREADS=1 unless it is set.
std::vector<std::string> RankEnvironment(const LocalWorld& world, int rank, const std::vector<std::string>& inherited);

// The environment of this process, as "NAME=value".
std::vector<std::string> OwnEnvironment();

}  // namespace planwright
