// What is set for the whole process of a rank, before anything else.
#pragma once

namespace planwright::executor {

// A write to a closed pipe, or to a file that may not grow, becomes an error of the call. Host memory that is refused
// becomes a std::bad_alloc (host_memory.h). An exception on a thread of a library ends the rank with its exit status.
// LibTorch computes on one thread.
void PrepareProcess();

}  // namespace planwright::executor
