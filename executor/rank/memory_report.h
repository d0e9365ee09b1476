// What a rank says of its GPU's memory when it is done (planner/wire/records/rank_memory.h).
#pragma once

#include <absl/status/status.h>

#include <map>
#include <string>

#include "executor/program/rank.h"
#include "planner/wire/records/rank_memory.h"

namespace planwright::executor {

// Bytes of the tensors that a rank holds from setup to the end. Its number and the peaks stay 0.
RankMemory HeldMemory(const std::map<std::string, ModuleState>& modules);
// Writes RUN/memory/rank0003.json. On a CPU nothing is measured, and nothing written. Errors of WriteFileAtomically.
absl::Status WriteMemoryReport(const std::string& run_dir, const Rank& rank);

}  // namespace planwright::executor
