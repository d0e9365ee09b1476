// The program's side of a request of several ranks (fork_request.h).
#pragma once

#include "absl/status/status.h"

namespace planwright {

// To be called first in main, before a thread is started or a device is opened. In a process that was started for one
// rank it does nothing. In one that was started for several it forks each and ends with exit status 0; in the ranks it
// returns. Each then leads its own process group, is a child of the launcher that dies with it, and has RANK,
// LOCAL_RANK, standard output and standard error of its own, as if the launcher had started it. If a library has
// started a thread by then, each rank is this program anew, with the same command line. Errors: InvalidArgument for a
// request that cannot be read, and ResourceExhausted if no process can be made. Ranks that were forked before the error
// wait until the launcher ends them.
absl::Status BecomeRank();

}  // namespace planwright
