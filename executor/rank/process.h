// What is set for the whole process of a rank, before anything else, and the request to save and stop that it hears:
// SIGUSR1, which the launcher sends when it is interrupted (docs/checkpoints.md#stopping).
#pragma once

namespace planwright::executor {

// A write to a closed pipe, or to a file that may not grow, becomes an error of the call. Host memory that is refused
// becomes a std::bad_alloc, whose what() has the size. An exception on a thread of a library ends the rank with its
// exit status. SIGTERM is ignored if there is a launcher, which asks the rank to save. LibTorch computes on one thread.
void PrepareProcess();

// A request to save and stop (SIGUSR1) that has come, or comes before ListenForStop, ends the process. While a rank
// starts it may wait for long (it meets others, reads an index, loads weights), and nothing is lost with it. The
// launcher starts ranks with the signal blocked, so that none is ended before it has read what it is to do.
void EndIfAsked();
// From now on the signal is a request, which AskedToStop tells.
void ListenForStop();
bool AskedToStop();  // the first time that it is true, it is logged

}  // namespace planwright::executor
