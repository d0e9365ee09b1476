// Puts the most memory that the ranks of a run held beside what the plan says (docs/memory.md#measured).
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/memory.h"
#include "planner/wire/records/rank_memory.h"
#include "planner/wire/records/run_memory.h"

namespace planwright {

// What the ranks of a run that is done measured. `on_gpus`: where they were; on CPUs memory is not measured. What
// cannot be read makes `why_not`, with the file.
RunMemory ReadRunMemory(const Plan& plan, const std::string& run_dir, bool on_gpus);

// The lines of one rank of a role.
RoleMemory CompareMemory(const RankMemory& measured, const RoleEstimate& estimate);

}  // namespace planwright
