// Gathers what a life of a run left once its ranks had ended: how it ended, and what their files tell.
#pragma once

#include <functional>

#include "planner/plan/plan.h"
#include "planner/run/launch/launch_life.h"
#include "planner/run/launch/run_options.h"
#include "planner/wire/records/outcome.h"

namespace planwright {

// The cause (cause.h), the last lines of the rank that failed, and slow ranks. Of a run that is done also its memory.
// With a probe, it joins the ranks' parts (assemble_probe.h); with a profile, it sums up and joins their traces; with
// record_routing, it writes routing.json (planner/wire/records/routing_folder.h). If one of these fails, a run that is
// done has the exit code kExitStorage, and the cause says what is missing. Large traces take long: once `stop` says so,
// they stay as ranks wrote them, and the outcome has no profile.
Outcome GatherOutcome(const Plan& plan, const RunOptions& options, const EndedLife& life,
                      const std::function<bool()>& stop = {});

}  // namespace planwright
