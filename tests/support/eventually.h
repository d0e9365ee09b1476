// Waits in tests for something that must happen. No test judges how long it takes; ./dev bench measures times.
#pragma once

#include <chrono>
#include <thread>

namespace planwright::testing {

// Longer than anything takes on a slow and busy machine.
inline constexpr std::chrono::minutes kPatience{10};

// True once the condition holds; false after the patience is over.
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
