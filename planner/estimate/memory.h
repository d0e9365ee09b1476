// Memory of each role's ranks by category, from the programs they run (docs/memory.md).
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Bytes on one rank's device at the fullest moment of a step (docs/memory.md).
struct MemoryBytes {
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, communication = 0, workspace = 0;
  int64_t total() const { return parameters + gradients + optimizer + activations + communication + workspace; }
  bool operator==(const MemoryBytes&) const = default;
};

// One role: all of its ranks hold the same.
struct RoleEstimate {
  const Role* role = nullptr;
  MemoryBytes planned;             // with expert rows at Module::imbalance times the mean (Symbol::expected)
  MemoryBytes worst;               // with every run-time size at its maximum
  std::string fullest;             // the moment: "experts_grad in language.layers.3"
  const Module* module = nullptr;  // whose block that is; the role's last if none
  int64_t limit = 0;               // of the device; 0: none is known
};

// In the order of Plan::roles. Reads nothing but the plan.
std::vector<RoleEstimate> EstimateMemory(const Plan& plan);

// "parameters 6.41 GB, gradients 12.82 GB, ..., in all 60.2 GB"; GB is 1e9 bytes.
std::string MemoryText(const MemoryBytes& bytes);
std::string GigabytesText(int64_t bytes);

// What could make a role that does not fit fit, in words; looks at what takes most.
std::string MemoryHelp(const Plan& plan, const RoleEstimate& estimate);

}  // namespace planwright
