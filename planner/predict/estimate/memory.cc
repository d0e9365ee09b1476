#include "planner/predict/estimate/memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/plan/optimizer_states.h"
#include "planner/plan/shard_map.h"
#include "planner/predict/estimate/step_peak.h"
#include "planner/predict/rates/device.h"

namespace planwright {
namespace {

// Adds what the ranks of a stage hold from setup to teardown: buckets, optimizer state, and tensors in no bucket.
void AddPersistentBytes(const Plan& plan, const Module& module, int stage, MemoryBytes& bytes) {
  for (const Bucket& bucket : module.buckets) {
    if (bucket.stage != stage) continue;
    const int64_t shard = bucket.elements / std::max(bucket.shards, 1);
    const int64_t master = DTypeBytes(bucket.master);
    bytes.parameters += bucket.elements * DTypeBytes(bucket.dtype);
    bytes.gradients += bucket.elements * master;
    const auto states = static_cast<int64_t>(HeldStates(plan.optimizer, bucket.dtype, bucket.master).size());
    bytes.optimizer += shard * states * master;
    if (bucket.shards > 1) bytes.communication += shard * master;  // the buffer that the reduction fills
  }
  for (const Storage& storage : module.storages) {
    if (storage.bucket >= 0 || storage.stage != stage) continue;
    // Frozen weights have the plan's type. A buffer (the expert bias) has the type of master weights.
    const bool buffer = !storage.parameters.empty() && storage.parameters[0] >= 0 &&
                        storage.parameters[0] < static_cast<int>(module.parameters.size()) &&
                        module.parameters[storage.parameters[0]].buffer;
    bytes.parameters += ElementsOf(storage.shape) * DTypeBytes(buffer ? plan.master() : plan.dtype());
  }
}

// Counts one for each group of the role's ranks and each stream on which it is used. One rank speaks for all.
int64_t CountCommunicators(const Plan& plan, const Role& role) {
  const int rank = role.ranks.front().first;
  int64_t count = 0;
  for (const Group& group : plan.groups) {
    const Module* module = plan.FindModule(group.module);
    const bool member =
        module ? module->grid.contains(rank) && module->grid.size(group.axes) > 1
               : group.ranks.empty() || std::find(group.ranks.begin(), group.ranks.end(), rank) != group.ranks.end();
    if (member) count += static_cast<int64_t>(group.streams.size());
  }
  return count;
}

RoleEstimate EstimateRole(const Plan& plan, const Role& role, LinkedBlocks& blocks, InstructionCosts& costs) {
  RoleEstimate estimate;
  estimate.role = &role;
  estimate.limit = DeviceOf(plan.cluster).memory;
  if (role.ranks.empty()) return estimate;
  for (const std::string& name : role.modules) {
    const Module* module = plan.FindModule(name);
    if (!module || !module->grid.contains(role.ranks.front().first)) continue;
    AddPersistentBytes(plan, *module, CoordinateOf(module->grid, role.ranks.front().first, Axis::kPp),
                       estimate.planned);
    estimate.module = module;
  }
  const LinkedProgram program(blocks, role);
  costs.Add(program.step_list());
  costs.Add(program.evaluate_list());
  if (estimate.limit > 0) estimate.libraries = kContextBytes + CountCommunicators(plan, role) * kCommunicatorBytes;
  estimate.planned.workspace = estimate.libraries;
  estimate.worst = estimate.planned;
  const auto add = [](const StepPeak& peak, MemoryBytes& bytes) {
    bytes.activations += peak.activations;
    bytes.communication += peak.communication;
    bytes.workspace += peak.workspace;
  };
  // Nothing of a step is left when an evaluation begins, and nothing of it when the next step does.
  const auto fullest = [&](SizeCase sizes) {
    const StepPeak of_step = FindPeak(program, program.step(), costs, sizes);
    const StepPeak of_round = FindPeak(program, program.evaluate(), costs, sizes);
    return of_round.total() > of_step.total() ? of_round : of_step;
  };
  const StepPeak peak = fullest(SizeCase::kPlanned);
  add(peak, estimate.planned);
  add(fullest(SizeCase::kWorst), estimate.worst);
  if (peak.instruction) {
    estimate.fullest =
        absl::StrCat(std::string(OpName(peak.instruction->kind)), " in ", peak.frame.empty() ? role.name : peak.frame);
    const Module* module = peak.block ? plan.FindModule(peak.block->module) : nullptr;
    if (module) estimate.module = module;
  }
  return estimate;
}

}  // namespace

std::vector<RoleEstimate> EstimateMemory(const Plan& plan) {
  LinkedBlocks blocks(plan);
  InstructionCosts costs(blocks);
  std::vector<RoleEstimate> estimates;
  for (const Role& role : plan.roles) estimates.push_back(EstimateRole(plan, role, blocks, costs));
  return estimates;
}

std::string GigabytesText(int64_t bytes) { return absl::StrFormat("%.2f GB", static_cast<double>(bytes) / 1e9); }

std::string MemoryText(const MemoryBytes& bytes) {
  return absl::StrCat("parameters ", GigabytesText(bytes.parameters), ", gradients ", GigabytesText(bytes.gradients),
                      ", optimizer ", GigabytesText(bytes.optimizer), ", activations ",
                      GigabytesText(bytes.activations), ", communication ", GigabytesText(bytes.communication),
                      ", workspace ", GigabytesText(bytes.workspace));
}

std::string MemoryHelp(const Plan& plan, const RoleEstimate& estimate) {
  const MemoryBytes& bytes = estimate.planned;
  // Values of the step take most: recompute, or cut them. Otherwise parameters and their state do: cut those.
  std::vector<std::string> ways;
  if (bytes.activations + bytes.communication >= bytes.parameters + bytes.gradients + bytes.optimizer) {
    if (estimate.module && estimate.module->recompute.empty() && estimate.module->trained()) {
      ways.push_back(absl::StrCat("modules.", estimate.module->name, ".recompute: full"));
    }
    if (plan.budget.micro_samples > 1) ways.push_back("smaller batch.micro_samples");
    if (estimate.module && estimate.module->has_images) {
      ways.push_back("more ranks for this encoder, so that each serves fewer samples");
    } else {
      ways.push_back("a larger tp or pp");
    }
  } else {
    ways.push_back("more ranks");
    ways.push_back(estimate.module && estimate.module->experts() > 0 ? "a larger ep, tp or pp" : "a larger tp or pp");
  }
  return absl::StrCat("what would help: ", absl::StrJoin(ways, ", or "));
}

}  // namespace planwright
