#include "executor/telemetry/step_pace.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "planner/predict/rates/device.h"

namespace planwright::executor {
namespace {

constexpr size_t kRecentSteps = 20;  // over which the time of a step is averaged, as `plan report` does

}  // namespace

StepPace::StepPace(const Plan& plan, bool on_gpus)
    : flops_(plan), ranks_(std::max(plan.world_size, 1)),
      tokens_(static_cast<double>(plan.budget.global_samples) * static_cast<double>(plan.budget.sequence_length)),
      peak_(on_gpus ? DeviceOf(plan.cluster).peak(plan.precision) : 0),
      steps_(plan.budget.steps), evaluation_{plan.budget.steps, plan.budget.global_samples,
                                             plan.evaluation.every_samples} {}

StepSpeed StepPace::Of(int64_t step, double seconds, std::span<const int64_t> elements) {
  if (seen_ == 1 || recent_.size() == kRecentSteps) recent_.pop_front();
  ++seen_;
  recent_.push_back(seconds);
  StepSpeed speed;
  const double mean = std::accumulate(recent_.begin(), recent_.end(), 0.0) / static_cast<double>(recent_.size());
  speed.seconds_left = mean * static_cast<double>(std::max<int64_t>(0, steps_ - step));
  if (evaluations_ > 0) {  // that of this step is still to come
    speed.seconds_left +=
        static_cast<double>(evaluation_.ComeAfter(step - 1)) * evaluation_seconds_ / static_cast<double>(evaluations_);
  }
  if (!(seconds > 0)) return speed;
  const double flops = flops_.Of(elements) / seconds / ranks_;
  speed.tokens = tokens_ / seconds / ranks_;
  speed.teraflops = flops / 1e12;
  if (peak_ > 0) speed.mfu = flops / peak_;
  return speed;
}

}  // namespace planwright::executor
