// Which steps of a part's run are traced, and so measured.
#pragma once

#include "planner/plan/plan.h"
#include "planner/wire/records/trace.h"

namespace planwright {

// Counted from 1. Of a plan with enough steps four, and up to sixteen if they are short, from the third one on; GPUs
// have worked for four seconds before, as predicted, as they are faster before they are warm. Of a plan with fewer
// steps the last ones: four of them come before warmth, and warmth before more than four. At least one.
StepRange TracedSteps(const Plan& plan, bool on_gpus);

}  // namespace planwright
