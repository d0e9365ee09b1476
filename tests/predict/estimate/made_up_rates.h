// Rates with which the time of a step is known by arithmetic: nothing takes time, except what a test says.
#pragma once

#include <limits>
#include <vector>

#include "planner/predict/rates/rates.h"

namespace planwright::testing {

// A device on which only these kinds take time: a second for each `flops` of them. Memory, links and hosts are
// unlimited.
inline RateTable OnlyKinds(const std::vector<OpKind>& kinds, double flops) {
  RateTable table;
  table.device.gpu = "made up";
  table.device.bf16 = table.device.fp32 = table.device.fp64 = flops;
  for (KindRate& kind : table.kinds) kind = {.products = std::numeric_limits<double>::infinity(), .passes = 0};
  for (OpKind kind : kinds) table.kinds[static_cast<size_t>(kind)].products = 1;
  table.start = table.latency = table.node_latency = 0;
  return table;
}

}  // namespace planwright::testing
