// What is set for the whole process of a rank, before anything else, and the request to save and stop that it hears:
// SIGUSR1, which the launcher sends when it is interrupted (docs/checkpoints.md#stopping).
#pragma once

namespace planwright::executor {

// A write to a closed pipe, or to a file that may not grow, becomes an error of the call. Host memory that is refused
// becomes a std::bad_alloc, whose what() has the size. An exception on a thread of a library ends the rank with its
// exit status. LibTorch computes on one thread.
void PrepareProcess();

// From now on SIGUSR1 is a request to save and stop, also before the first step: then that one step is run and saved.
void ListenForStop();
bool AskedToStop();  // the first time that it is true, it is logged

}  // namespace planwright::executor
