#include "planner/predict/estimate/step_speed.h"

#include "planner/predict/estimate/evaluation_time.h"
#include "planner/predict/estimate/model_flops.h"
#include "planner/predict/rates/device.h"

namespace planwright {

StepSpeed SpeedOf(const Plan& plan, const StepTime& time) {
  StepSpeed speed;
  if (!(time.length > 0) || plan.world_size <= 0) return speed;
  const double ranks = plan.world_size, seconds = time.length;
  double flops = 0;
  for (const Module& module : plan.modules) {
    const ModuleFlops of = FlopsOf(plan, module);
    flops += of.step.model();
    speed.images_known &= of.known;
  }
  const auto tokens =
      static_cast<double>(plan.budget.global_samples) * static_cast<double>(plan.budget.sequence_length);
  speed.tokens_per_second = tokens / seconds / ranks;
  const double peak = DeviceOf(plan.cluster).peak(plan.precision);
  if (peak > 0) speed.mfu = flops / (seconds * ranks * peak);
  const SaveTime& save = time.save;
  // The last checkpoint has no step beside it.
  const double saves = save.every > 0 ? static_cast<double>((plan.budget.steps - 1) / save.every) : 0;
  speed.evaluation = TimeEvaluation(plan);
  speed.evaluations = CountEvaluations(plan);
  speed.hours = (static_cast<double>(plan.budget.steps) * seconds + saves * save.longer + save.copy +
                 static_cast<double>(speed.evaluations) * speed.evaluation) /
                3600;
  speed.rank_hours = speed.hours * ranks;
  return speed;
}

}  // namespace planwright
