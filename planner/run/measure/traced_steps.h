// Which steps of a part's run are traced, and so measured.
#pragma once

#include "planner/plan/plan.h"
#include "planner/wire/records/trace.h"

namespace planwright {

// Of a plan with enough steps four, and up to sixteen if they are short, from the third one on. GPUs have worked for
// some seconds before, as they are faster before they are warm. A plan with fewer steps is traced to its last one, with
// fewer steps before.
StepRange TracedSteps(const Plan& plan, bool on_gpus);

}  // namespace planwright
