// How the ranks of a run find each other, and make sure that all belong to one run and have one plan, before anything
// else.
#pragma once

#include <absl/status/statusor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Store;
}

namespace planwright::executor {

// What the environment variables say: RANK, WORLD_SIZE, LOCAL_RANK (or Slurm's SLURM_PROCID, SLURM_NTASKS,
// SLURM_LOCALID), MASTER_ADDR and MASTER_PORT. PLANWRIGHT_NONCE names the run. `timeout` is that of
// planner/run_files/run_timeout.h.
struct Environment {
  int rank = 0, world_size = 1, local_rank = 0;
  std::string address;
  int port = 0;
  std::string nonce;
  std::string host;
  std::chrono::milliseconds timeout{600000};
};

// InvalidArgument if a variable is missing or not a number, or if the usual variable and Slurm's disagree; the message
// has both values.
absl::StatusOr<Environment> ReadEnvironment();

// Connects to the store that rank 0 serves at address:port. Unavailable if nobody answers in time.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> OpenStore(const Environment& environment);

// Another connection to the same store, for another thread: one that waits in the store would hold up the others of its
// connection. Rank 0 must have opened the store.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> ConnectToStore(const Environment& environment);

// Every rank posts its nonce, plan digest and host, and reads those of all others, before any collective. If a rank
// differs from the majority, every rank gets FailedPrecondition, which names that rank with its host and both digests.
// Unavailable, with the missing ranks, if not all come within the timeout.
absl::Status AgreeOnPlan(const Environment& environment, const std::string& plan_digest, c10d::Store& store);

// Every rank says that it has come to the occasion `what`. Rank 0 serves the store and must not end before the others,
// so it waits here until all have come or `timeout` is over. The others return at once.
void WaitForAll(const Environment& environment, const std::string& what, std::chrono::milliseconds timeout,
                c10d::Store& store);

}  // namespace planwright::executor
