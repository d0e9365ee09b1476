#include "planner/run/outcome/measured_memory.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"

namespace planwright {

RoleMemory CompareMemory(const RankMemory& measured, const RoleEstimate& estimate) {
  const MemoryBytes& planned = estimate.planned;
  const int64_t step = planned.activations + planned.communication + planned.workspace - estimate.libraries;
  RoleMemory memory{.role = estimate.role->name, .rank = measured.rank};
  memory.lines = {
      {"parameters", planned.parameters, measured.parameters},
      {"gradients", planned.gradients, measured.gradients},
      {"optimizer", planned.optimizer, measured.optimizer},
      {"values of a step", step, measured.tensors_peak - measured.held()},
      {"held by the allocator beside tensors", std::nullopt, measured.reserved_peak - measured.tensors_peak},
      {"context and libraries", estimate.libraries, measured.used - measured.reserved_peak}};
  memory.all = {"in all", planned.total(), measured.used};
  return memory;
}

RunMemory ReadRunMemory(const Plan& plan, const std::string& run_dir, bool on_gpus) {
  if (!on_gpus) return {{}, "not measured on CPUs"};
  std::map<const Role*, RankMemory> fullest;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    const std::string path = RankMemoryPath(run_dir, rank);
    const absl::StatusOr<std::string> text = ReadWholeFile(path, kRankMemoryJson.bytes);
    if (!text.ok()) return {{}, std::string(text.status().message())};
    const absl::StatusOr<RankMemory> memory = ReadRankMemory(*text);
    if (!memory.ok()) return {{}, absl::StrCat(path, ": ", memory.status().message())};
    const auto [most, is_first] = fullest.try_emplace(plan.RoleOf(rank), *memory);
    if (!is_first && memory->tensors_peak > most->second.tensors_peak) most->second = *memory;
  }
  RunMemory run;
  for (const RoleEstimate& estimate : EstimateMemory(plan)) {
    if (const auto found = fullest.find(estimate.role); found != fullest.end())
      run.roles.push_back(CompareMemory(found->second, estimate));
  }
  return run;
}

}  // namespace planwright
