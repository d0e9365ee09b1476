// From modules and bridges to the order in which every pipeline stage works.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The 1F1B order of every stage of `modules`, each with a forward and a backward of each microbatch. (LowerPrograms
// drops the backwards of stages where nothing learns.) Nothing, and a problem (PW0305), when bridges form a circle.
// Warning PW0411: with fewer microbatches than stages some stage is idle at every moment
// (docs/layouts/pipeline.md#utilization).
std::optional<std::vector<StageSchedule>> ScheduleModules(const Recipe& recipe, const std::vector<Module>& modules,
                                                          const std::vector<Bridge>& bridges, int64_t microbatches,
                                                          Diagnostics& diagnostics);

}  // namespace planwright
