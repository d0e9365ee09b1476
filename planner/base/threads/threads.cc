#include "planner/base/threads/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace planwright {
namespace {

thread_local int limit_of_thread = std::numeric_limits<int>::max();

}  // namespace

int ThreadsOfRank() {
  cpu_set_t cores;
  // More cores than a cpu_set_t has bits: the call fails.
  const int usable = sched_getaffinity(0, sizeof cores, &cores) == 0
                         ? CPU_COUNT(&cores)
                         : static_cast<int>(std::thread::hardware_concurrency());
  if (std::getenv("PLANWRIGHT_OWN_CORES") != nullptr) return std::max(1, usable);
  const char* ranks = std::getenv("LOCAL_WORLD_SIZE");
  return std::max(1, usable / std::max(1, ranks == nullptr ? 1 : std::atoi(ranks)));
}

void ForEachItem(int threads, int64_t items, const std::function<void(int64_t item)>& work) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto take_items = [&] {
    try {
      for (int64_t item = next++; item < items; item = next++) work(item);
    } catch (const std::exception&) {  // anything else ends the process
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = items;
    }
  };
  {
    std::vector<std::jthread> others;  // joined at the end of the scope
    const int64_t wanted = std::min<int64_t>({threads, limit_of_thread, items});
    for (int64_t i = 1; i < wanted; ++i) others.emplace_back(take_items);
    take_items();
  }
  if (failure) std::rethrow_exception(failure);
}

ThreadLimit::ThreadLimit(int threads) : before_(std::exchange(limit_of_thread, threads)) {}

ThreadLimit::~ThreadLimit() { limit_of_thread = before_; }

}  // namespace planwright
