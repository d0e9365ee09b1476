// What a search may find, for tests of how it is shown.
#pragma once

#include "planner/search/results/tuned_text.h"

namespace planwright::testing {

inline TunedLayout LayoutOf(const std::string& line, double seconds, int64_t memory) {
  return {.changes = {"batch.micro_samples=2"},
          .line = line,
          .seconds = seconds,
          .speed =
              StepSpeed{.tokens_per_second = 1000 / seconds, .hours = 44.15 * seconds, .rank_hours = 11655.5 * seconds},
          .memory = memory,
          .limit = 80'000'000'000,
          .waits = "language.s0",
          .waits_for = "radio_encoder.s0",
          .waiting = 0.25,
          .bound = "language.moe experts",
          .bound_share = 0.5,
          .digest = "0123",
          .proved = true};
}

inline Found FoundLayouts() {
  Found found;
  found.result.gpus = 264, found.result.asked = 3, found.result.within = 0.1;
  found.result.cluster.gpu = "h100_sxm", found.result.cluster.nodes = 33, found.result.cluster.gpus_per_node = 8;
  found.result.best = {LayoutOf("first <layout>", 2, 30'000'000'000), LayoutOf("second", 1.99, 40'000'000'000),
                       LayoutOf("third", 3, 20'000'000'000)};
  found.result.best[0].equal = found.result.best[1].equal = true;
  found.result.given = LayoutOf("given layout", 6.9, 61'370'000'000);
  found.result.given->changes.clear();
  found.result.frontier = {found.result.best[1], found.result.best[0], found.result.best[2]};
  found.result.counts = {.space = 1204089,
                         .rules = 1000000,
                         .memory = 200000,
                         .time = 4000,
                         .found = 89,
                         .left = 0,
                         .timed = 4567,
                         .simulated = 89};
  found.result.best[1].simplest = true, found.result.best[1].simplicity = "1 axis beside dp, even stages, no recompute";
  found.result.best[1].alike = 812;
  found.result.error = {.same_grids = 0.01, .other_grids = 0.02};
  found.result.lower_bound = 1.9, found.result.fastest = 1.99;
  found.result.gap = 0.05;
  found.result.sensitivity = {{"network", 2.5, "third"}, {"link", 0, ""}};
  return found;
}

}  // namespace planwright::testing
