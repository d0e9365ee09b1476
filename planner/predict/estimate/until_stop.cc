#include "planner/predict/estimate/until_stop.h"

#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/rates.h"

namespace planwright {

double PredictedStep(const Plan& plan) {
  if (plan.launch.predicted_step > 0) return plan.launch.predicted_step;
  const Rates rates = RatesOf(plan);
  return rates.known() ? TimeStep(plan, rates).length : 0;
}

}  // namespace planwright
