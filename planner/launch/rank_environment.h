// What a rank finds in its environment: the field's variables, as torchrun sets them, and the run's nonce.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct LocalWorld {
  int world_size = 1;
  int port = 0;       // of the first rank's store, on 127.0.0.1
  std::string nonce;  // tells this run's ranks from another run's
};

// A port of 127.0.0.1 that nobody uses at the moment, and 128 random bits as the nonce.
absl::StatusOr<LocalWorld> MakeLocalWorld(int world_size);

// `inherited` ("NAME=value") with RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT and
// PLANWRIGHT_NONCE replaced, and OMP_NUM_THREADS=1 unless it is set.
std::vector<std::string> RankEnvironment(const LocalWorld& world, int rank, const std::vector<std::string>& inherited);

// This process's environment.
std::vector<std::string> OwnEnvironment();

}  // namespace planwright
