// Waiting in tests for what must come. No test judges how long that takes: seconds are for ./dev bench.
#pragma once

#include <chrono>
#include <thread>

namespace planwright::testing {

// However slow or busy a machine is: only what never comes takes this long.
inline constexpr std::chrono::minutes kPatience{10};

// Whether the condition came to hold.
template <typename Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace planwright::testing
