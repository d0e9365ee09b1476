// What a run of instructions does to the clocks of a rank, at least: its host and its main stream. Times of the end are
// the greatest of sums of times of the begin and constants, so that passes compose. All that could make a rank slower
// is left out: other ranks, and what else its streams do. So a composed time is a lower bound of the simulated one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace planwright {

inline constexpr double kNever = -std::numeric_limits<double>::infinity();

struct RankClocks {
  double host = 0, main = 0;  // when the host comes on, and when the main stream is free
};

struct Pass {
  // host_main: from the main stream's clock at the begin to the host's at the end.
  double host_host = 0, host_main = kNever, main_host = kNever, main_main = 0;
  double work = 0;  // seconds of the main stream that compute

  // Bytes of values on the device: how many more there are at the end, and at the fullest moment, than at the begin.
  int64_t delta = 0, peak = 0;

  RankClocks After(const RankClocks& begin) const {
    return {std::max(begin.host + host_host, begin.main + host_main),
            std::max(begin.host + main_host, begin.main + main_main)};
  }

  // This one, and then the other.
  Pass Then(const Pass& next) const {
    return {.host_host = std::max(host_host + next.host_host, main_host + next.host_main),
            .host_main = std::max(host_main + next.host_host, main_main + next.host_main),
            .main_host = std::max(host_host + next.main_host, main_host + next.main_main),
            .main_main = std::max(host_main + next.main_host, main_main + next.main_main),
            .work = work + next.work,
            .delta = delta + next.delta,
            .peak = std::max(peak, delta + next.peak)};
  }
};

}  // namespace planwright
