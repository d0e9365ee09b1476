// How the ranks of a run find each other, and make sure that they are of one run with one plan before anything else.
#pragma once

#include <absl/status/statusor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Store;
}

namespace planwright::executor {

// From the environment: RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT; else Slurm's SLURM_PROCID,
// SLURM_NTASKS, SLURM_LOCALID. PLANWRIGHT_NONCE names the run; `timeout` is planner/run_files/run_timeout.h's.
struct Environment {
  int rank = 0, world_size = 1, local_rank = 0;
  std::string address;
  int port = 0;
  std::string nonce;
  std::string host;
  std::chrono::milliseconds timeout{600000};
};

// InvalidArgument if a variable is missing or not a number, or if two that name the same thing disagree; says both
// values.
absl::StatusOr<Environment> ReadEnvironment();

// Connects to the store that rank 0 serves at address:port. Unavailable if nobody answers in time.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> OpenStore(const Environment& environment);

// Every rank posts (nonce, plan digest, host) and reads all others' before any collective. FailedPrecondition, on every
// rank, if one differs from the majority: names it with its host and both digests. Unavailable if a rank does not come:
// names it.
absl::Status AgreeOnPlan(const Environment& environment, const std::string& plan_digest, c10d::Store& store);

// Rank 0 serves the store, so it waits here until all ranks have come, or the time is over. `what` names the occasion.
void WaitForAll(const Environment& environment, const std::string& what, std::chrono::milliseconds timeout,
                c10d::Store& store);

}  // namespace planwright::executor
