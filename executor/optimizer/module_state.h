// What a rank holds of one module: flat buckets of parameters, gradients and optimizer state, and the storages that are
// views of them (facts 5.3).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

// Elements [first, end) of an owned shard whose weights decay, or do not.
struct DecayRange {
  int64_t first = 0, end = 0;
  bool decay = false;
};

struct BucketState {
  at::Tensor parameters;       // whole, as used by forward
  at::Tensor gradients;        // whole, this rank's sum over microbatches
  at::Tensor parameter_shard;  // the owned part: a view of parameters
  at::Tensor gradient_shard;   // the owned part, reduced: gradients itself when there is one shard
  at::Tensor master;           // owned; parameter_shard itself when the dtypes are equal
  // owned; those of optimizer_states.h that the plan holds, but for the master
  std::map<std::string, at::Tensor, std::less<>> states;
  int64_t shard_first = 0, shard_end = 0;  // elements of the bucket that this rank owns
  std::vector<DecayRange> ranges;          // tile the shard
  bool counted = true;                     // its squares count on this rank (Bucket::once_over)
};

struct SlotTensors {
  at::Tensor parameter;
  at::Tensor gradient;  // undefined: a buffer
};

// The bias of a layer with experts, which the routing counts move.
struct ExpertBias {
  const LayerSummary* layer = nullptr;
  at::Tensor bias;
};

class ModuleState {
 public:
  // Allocates, uninitialised. Reads `plan` and `module` as long as it lives.
  ModuleState(const Plan& plan, const Module& module, int rank, at::Device device);

  const Module& module() const { return *module_; }
  std::vector<BucketState>& buckets() { return buckets_; }
  const std::vector<BucketState>& buckets() const { return buckets_; }

  // Parameter and gradient of a storage; in the order of Module::storages.
  const SlotTensors& slot(const std::string& frame, const std::string& slot) const;
  const std::vector<SlotTensors>& storages() const { return storages_; }
  const std::vector<ExpertBias>& expert_biases() const { return expert_biases_; }

  // Copies the owned part of the parameters into the masters: after anything that writes weights outside the optimizer.
  void RefreshMasters();
  void ZeroGradients();

 private:
  const Module* module_;
  std::vector<BucketState> buckets_;
  std::vector<SlotTensors> storages_;
  std::vector<ExpertBias> expert_biases_;
  std::map<std::pair<std::string, std::string>, size_t> by_slot_;
};

}  // namespace planwright::executor
