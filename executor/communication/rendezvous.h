// How the ranks of a run find each other, before anything else (docs/rendezvous.md). What they then agree on:
// executor/communication/agreement.h.
#pragma once

#include <absl/status/statusor.h>
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>

namespace c10d {
class Store;
}

namespace planwright::executor {

// Who serves the store that ranks meet at (docs/rendezvous.md).
enum class StoreHost {
  kLauncher,  // the launcher, before it starts a rank
  kRank0,     // rank 0, at MASTER_ADDR and MASTER_PORT
  kTorchrun,  // rank 0, at MASTER_ADDR and a free port that it tells through the store of torchrun's agent at
              // MASTER_PORT
};

// What the environment variables say: RANK, WORLD_SIZE, LOCAL_RANK (or Slurm's SLURM_PROCID, SLURM_NTASKS,
// SLURM_LOCALID), MASTER_ADDR and MASTER_PORT. PLANWRIGHT_NONCE (or torchrun's TORCHELASTIC_RUN_ID) names the run.
// `timeout` is that of planner/wire/records/run_timeout.h.
struct Environment {
  int rank = 0, world_size = 1, local_rank = 0;
  std::string address;
  int port = 0;
  std::string nonce;
  std::string host;
  std::chrono::milliseconds timeout{600000};
  StoreHost store_host = StoreHost::kRank0;
  // PLANWRIGHT_SECRET of the launcher. Else it is made of the run's name, which keeps out the ranks of another run, but
  // nobody who wants to come in.
  std::string secret;
  // The address of this machine that the other ranks reach; of GLOO_SOCKET_IFNAME, or, if that is not set, found by
  // OpenStore.
  std::string own_address;
  int local_world_size = 0;  // LOCAL_WORLD_SIZE; 0: it is not set
};

// InvalidArgument if a variable is missing or not a number, or if the usual variable and Slurm's disagree; the message
// has both values. InvalidArgument also if GLOO_SOCKET_IFNAME names no interface of this machine.
absl::StatusOr<Environment> ReadEnvironment();

// Serves the store, if this is rank 0 and no launcher does, and connects to it. Sets `port`, if it is not that of the
// environment, and `own_address`. Unavailable, in one line, if the store cannot be served or reached;
// FailedPrecondition if a store answers that belongs to another run.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> OpenStore(Environment& environment);

// Another connection to the same store, for another thread: one that waits in the store would hold up the others of its
// connection. The store must have been opened with `environment` before.
absl::StatusOr<c10::intrusive_ptr<c10d::Store>> ConnectToStore(const Environment& environment);

// Waits until every rank has called it with the same `what`, for `timeout` at most; also ends if the store is gone.
// Until then no rank may end: its peers may still receive what it has sent, as a communication is done here before it
// is done there, and a store that rank 0 serves ends with it.
void WaitForAll(const Environment& environment, const std::string& what, std::chrono::milliseconds timeout,
                c10d::Store& store);

}  // namespace planwright::executor
