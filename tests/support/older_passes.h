// What runs took that pages keep, and steps no longer do: all gradients were cleared at the begin of a step, and GPUs
// scaled them in memory. Predictions that such runs judge have these passes, so that both speak of the same work.
#pragma once

#include <algorithm>

#include "planner/plan/plan.h"
#include "planner/plan/precision.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/rates.h"

namespace planwright::testing {

// In seconds. `time`: of the plan, predicted as it runs now.
inline double OlderPasses(const Plan& plan, const StepTime& time) {
  const Rates rates = RatesOf(plan);
  const auto wide = static_cast<double>(DTypeBytes(plan.master()));
  double most = 0;
  for (const RoleTime& role : time.roles) {
    const int rank = role.ranks.front().first;
    double cleared = 0, seconds = 0;
    for (const Module& module : plan.modules) {
      if (!module.grid.contains(rank)) continue;
      const int stage = CoordinateOf(module.grid, rank, Axis::kPp);
      for (const Bucket& bucket : module.buckets) {
        if (bucket.stage != stage) continue;
        const double bytes = wide * static_cast<double>(bucket.elements);
        cleared += bytes;
        if (plan.cluster.gpu == "none") continue;
        const double shard = bytes / std::max(1, bucket.shards);
        seconds += rates.Compute({.kind = OpKind::kScaleGradients, .bytes = 2 * shard, .dtype = plan.dtype()}).seconds;
      }
    }
    seconds += rates.Compute({.kind = OpKind::kBeginStep, .bytes = cleared, .dtype = plan.dtype()}).seconds;
    for (const OperationTime& operation : role.operations)
      seconds -= operation.kind == "begin_step" ? operation.seconds : 0;
    most = std::max(most, seconds);
  }
  return most;
}

}  // namespace planwright::testing
