// The most memory that the ranks of a run held, beside what the plan says (docs/memory.md#measured).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "planner/estimate/memory.h"
#include "planner/plan/plan.h"
#include "planner/run_files/rank_memory.h"

namespace planwright {

// One category, in bytes.
struct MemoryLine {
  std::string name;
  std::optional<int64_t> planned;  // nullopt: the plan says nothing of it
  int64_t measured = 0;
};

// Of the rank of a role that held most.
struct RoleMemory {
  std::string role;
  int rank = 0;
  std::vector<MemoryLine> lines;  // they add up to `all`
  MemoryLine all;                 // of the device
};

struct RunMemory {
  std::vector<RoleMemory> roles;  // in the order of Plan::roles
  std::string why_not;            // why there are none; empty: there are
};

// Of a run that is done. `on_gpus`: where its ranks were; on CPUs memory is not measured. What a rank measured and
// cannot be read makes `why_not`, with the file.
RunMemory ReadRunMemory(const Plan& plan, const std::string& run_dir, bool on_gpus);

// The lines of one rank of a role.
RoleMemory CompareMemory(const RankMemory& measured, const RoleEstimate& estimate);

// A list of roles, or the text why there is none.
nlohmann::ordered_json RunMemoryJson(const RunMemory& memory);

}  // namespace planwright
