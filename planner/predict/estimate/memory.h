// Memory of the ranks of each role, by category, from the programs that they run. Formulas: docs/memory.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Device memory that libraries take, which the allocator does not count. Measured on H200 with CUDA 13.0 and NCCL 2.28.
// Context: CUDA's context, the kernels of LibTorch, cuBLAS and cuDNN: 0.73 GB. Communicator: NCCL's channels and their
// buffers, between two GPUs of a node: 0.58 GB.
inline constexpr int64_t kContextBytes = int64_t{720} << 20;
inline constexpr int64_t kCommunicatorBytes = int64_t{560} << 20;

// Bytes on the device of one rank at the fullest moment of a step or an evaluation. The categories are those of
// docs/memory.md.
struct MemoryBytes {
  int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, communication = 0, workspace = 0;
  int64_t total() const { return parameters + gradients + optimizer + activations + communication + workspace; }
  bool operator==(const MemoryBytes&) const = default;
};

// One role. All of its ranks hold the same.
struct RoleEstimate {
  const Role* role = nullptr;
  MemoryBytes planned;             // with expert rows at Module::imbalance times the mean (Symbol::expected)
  MemoryBytes worst;               // with every run-time size at its maximum
  int64_t libraries = 0;           // of the workspace, planned and worst: what libraries take, and no allocator counts
  std::string fullest;             // the fullest moment: "experts_grad in language.layers.3"
  const Module* module = nullptr;  // the module of the block that runs then; if there is none, the role's last module
  int64_t limit = 0;               // bytes of the device; 0: no limit is known
};

// In the order of Plan::roles. Pointers are into the plan.
std::vector<RoleEstimate> EstimateMemory(const Plan& plan);

// "parameters 6.41 GB, gradients 12.82 GB, ...": each category, without the total.
std::string MemoryText(const MemoryBytes& bytes);
std::string GigabytesText(int64_t bytes);  // "6.41 GB"; a GB is 1e9 bytes

// "what would help: ...": changes of the recipe that make the largest category of a role smaller.
std::string MemoryHelp(const Plan& plan, const RoleEstimate& estimate);

}  // namespace planwright
