// What runs did that pages keep, and steps no longer do: neighbours were never done as one
// (planner/plan/link/joins.def), all gradients were cleared at the begin of a step, and GPUs scaled them in memory.
// Predictions that such runs judge have these passes, so that both speak of the same work.
#pragma once

#include <algorithm>

#include "planner/plan/link/joins.h"
#include "planner/plan/plan.h"
#include "planner/plan/precision.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/rates.h"

namespace planwright::testing {

// The plan with neighbours that are never done as one: the value between them lives on, or the second is on a stream of
// its own, where it waits for the first as before. That of CPUs stays as it is, as nothing joins there.
inline Plan OneByOne(Plan plan) {
  if (plan.cluster.gpu == "none") return plan;
  for (Block& block : plan.blocks) {
    for (size_t i = 1; i < block.body.size(); ++i) {
      const Instruction& first = block.body[i - 1];
      Instruction& second = block.body[i];
      const Join join = JoinOf(first, second);
      if (join == Join::kPasses) std::erase(second.frees, first.outputs.front().name);
      if (join == Join::kKeeps) second.stream = first.stream.empty() ? "apart" : "";
    }
  }
  return plan;
}

// Seconds of clearing and scaling that a step no longer has. `time`: of the plan, predicted as it runs now.
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

// Seconds of a step as those runs made it.
inline double OlderStep(const Plan& plan) {
  const Plan apart = OneByOne(plan);
  const StepTime time = TimeStep(apart);
  return time.length + OlderPasses(apart, time);
}

}  // namespace planwright::testing
