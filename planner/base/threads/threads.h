// Work on the host that is spread over the cores of this rank. Only for work whose result does not depend on how it is
// spread: each item writes its own memory, and nothing is summed. LibTorch's own threads stay at one.
#pragma once

#include <cstdint>
#include <functional>

namespace planwright {

// How many threads this rank may use: the cores that this process may run on, divided by the ranks of this machine
// (LOCAL_WORLD_SIZE, which the launcher sets). They are not divided if the launcher has bound this rank to cores of its
// own (PLANWRIGHT_OWN_CORES), or if neither variable is set: then Slurm may have bound it. At least 1.
int ThreadsOfRank();

// Calls work(0), ..., work(items - 1), each once, on up to `threads` threads; the calling thread is one of them. Items
// are handed out in order. Returns when all are done. If a call throws, items that have not begun are left out, and the
// first exception is thrown here.
void ForEachItem(int threads, int64_t items, const std::function<void(int64_t item)>& work);

// While it lives, ForEachItem takes at most `threads` threads for a call on this one: this one has others beside it
// that share the cores.
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  const int before_;
};

}  // namespace planwright
