// Sample numbers of a call (design, "Samples"): microbatch m of step t is a contiguous block of samples, dealt to lanes
// in contiguous parts.
#include "executor/ops/handler.h"

namespace planwright::executor {
int64_t CallContext::block_first_sample() const {
  return step * plan->budget.global_samples + microbatch * plan->budget.block_samples;
}

LaneSamples CallContext::lane_samples() const {
  const LaneSamples part = SamplesOfLane(plan->budget.block_samples, lanes, lane);
  const int64_t first = block_first_sample();
  return {first + part.first, first + part.end};
}

}  // namespace planwright::executor
