#include "planner/state/checkpoint/plan_fit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/optimizer_states.h"
#include "planner/state/checkpoint/pieces.h"

namespace planwright {

std::vector<std::string> TensorMisfits(const Plan& plan, const CheckpointReader& checkpoint) {
  // Then every tensor has another type, which is not worth a line each.
  if (const std::string& precision = checkpoint.manifest().precision; precision != plan.precision)
    return {absl::StrCat("the checkpoint is of a run in ", precision, ", and the plan is in ", plan.precision)};
  return TensorsThatDiffer(plan, checkpoint.tensors());
}

absl::StatusOr<int64_t> StepsDone(const Plan& plan, const std::string& folder, const CheckpointCounters& counters) {
  const int64_t samples = plan.budget.global_samples;
  if (counters.consumed_samples % samples == 0) return counters.consumed_samples / samples;
  return absl::InvalidArgumentError(absl::StrCat("checkpoint ", folder, " is after ", counters.consumed_samples,
                                                 " samples, which is no whole number of steps of ", samples,
                                                 " samples; use a batch.global_samples that divides it"));
}

int64_t BytesToLoad(const Plan& plan, const Role& role) {
  int64_t bytes = 0;
  for (const std::string& name : role.modules) {
    const Module* module = plan.FindModule(name);
    if (module == nullptr || role.ranks.empty()) continue;
    const int stage = CoordinateOf(module->grid, role.ranks.front().first, Axis::kPp);
    for (const Storage& storage : module->storages) {
      const bool has_bucket = storage.bucket >= 0;
      if (storage.stage != stage || (module->adapted() && !has_bucket)) continue;
      // As PiecesToLoad has it: a weight with a master is loaded from the master.
      const bool buffer = module->parameters.at(storage.parameters.front()).buffer;
      const DType dtype = has_bucket ? module->buckets.at(storage.bucket).master
                          : buffer   ? plan.master()
                                     : plan.dtype();
      bytes += ElementsOf(storage.shape) * DTypeBytes(dtype);
    }
    for (const Bucket& bucket : module->buckets) {
      if (bucket.stage != stage) continue;
      const auto states = static_cast<int64_t>(HeldStates(plan.optimizer, bucket.dtype, bucket.master).size());
      bytes += bucket.elements / bucket.shards * states * DTypeBytes(bucket.master);
    }
  }
  return bytes;
}

}  // namespace planwright
