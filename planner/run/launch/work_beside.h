// Work of a launcher that may take long while no ranks run: what a life left is gathered, traces are read and joined,
// folders are made and removed.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <utility>

#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/rank_starter.h"

namespace planwright {

// Does `work` in a thread of its own and returns what it returns. Meanwhile it keeps alive what the starter needs for
// the next life (RankStarter::Pause): agents take a head that says nothing for lost. `signal`: becomes the first that
// comes meanwhile, unless it is one already, so that the work may look at it.
template <typename Work>
auto WorkBeside(RankStarter& starter, std::atomic<int>& signal, Work&& work) {
  using namespace std::chrono_literals;
  const HeldSignals held;  // also for the thread
  auto result = std::async(std::launch::async, std::forward<Work>(work));
  // What takes a moment is not waited for longer than that.
  for (std::chrono::milliseconds pause = 1ms;; pause = std::min<std::chrono::milliseconds>(2 * pause, 100ms)) {
    const int came = starter.Pause(pause);
    if (int none = 0; came != 0) signal.compare_exchange_strong(none, came);
    if (result.wait_for(0s) == std::future_status::ready) return result.get();
  }
}

}  // namespace planwright
