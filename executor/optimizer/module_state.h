// What a rank keeps of one module: flat buckets of parameters, gradients and optimizer state, and storages, which are
// views of the buckets (docs/training/step.md#gradient-buckets). A rank has those of its pipeline stage alone; those of
// other stages are there as empty entries, so that indices are those of the plan.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

// What elements of a shard are stepped with: whether they decay (docs/training/step.md#weight-decay-rule), and in which
// part of rates they are (Parameter::part).
struct StepRule {
  bool decay = false;
  int part = -1;
  bool operator==(const StepRule&) const = default;
};

// Elements [first, end) of an owned shard that one rule is for.
struct RatedRange {
  int64_t first = 0, end = 0;
  StepRule rule;
};

// Says when a copy that another thread makes is done.
class CopyMark {
 public:
  void Done() { done_.set_value(); }          // once
  void Wait() { done_.get_future().wait(); }  // once

 private:
  std::promise<void> done_;
};

// One bucket. All tensors are flat. "Owned": the shard that this rank steps, shard_end - shard_first elements.
// Parameters have Bucket::dtype; gradients, masters and optimizer states have Bucket::master.
struct BucketState {
  at::Tensor parameters;       // whole, as the forward reads them
  at::Tensor gradients;        // whole: this rank's sum over microbatches
  at::Tensor parameter_shard;  // owned: a view of parameters
  at::Tensor gradient_shard;   // owned, reduced over ranks; gradients itself if there is only one shard
  at::Tensor master;           // owned; parameter_shard itself if the dtypes are equal
  // Owned: the states of planner/plan/optimizer_states.h that the plan keeps, except the master.
  std::map<std::string, at::Tensor, std::less<>> states;
  int64_t shard_first = 0, shard_end = 0;  // elements of the bucket that this rank owns
  std::vector<RatedRange> ranges;          // cover the shard, without gaps and in order
  // The same on the device, i64 [ranges, 2]: end, and the row of what its elements are stepped with: 2 (part + 1), and
  // 1 more if they decay.
  at::Tensor range_table;
  // Master and states are being copied for a checkpoint: the optimizer waits for it. Null: they are not.
  std::shared_ptr<CopyMark> copied;
  // Whether this rank adds the squares of the shard to the norm: ranks with a replica of it do not (Bucket::once_over).
  bool counted = true;
};

struct SlotTensors {
  at::Tensor parameter;
  at::Tensor gradient;  // undefined: a buffer, or a frozen weight
};

// The expert bias of a layer, moved by routing counts (docs/model/mixture_of_experts.md#expert-bias).
struct ExpertBias {
  const LayerSummary* layer = nullptr;
  at::Tensor bias;
};

class ModuleState {
 public:
  // Allocates everything of this rank's stage, filled with zeros. `module` must outlive this. c10::Error if the plan's
  // sizes do not fit.
  ModuleState(const Plan& plan, const Module& module, int rank, at::Device device);

  const Module& module() const { return *module_; }
  std::vector<BucketState>& buckets() { return buckets_; }
  const std::vector<BucketState>& buckets() const { return buckets_; }

  int stage() const { return stage_; }  // this rank's
  // Whether storage or bucket `index` of the module is on this rank.
  bool has_storage(size_t index) const { return module_->storages[index].stage == stage_; }
  bool has_bucket(size_t index) const { return module_->buckets[index].stage == stage_; }

  const SlotTensors& slot(const std::string& frame, const std::string& slot) const;  // c10::Error if there is none
  // In the order of Module::storages.
  const std::vector<SlotTensors>& storages() const { return storages_; }
  const std::vector<ExpertBias>& expert_biases() const { return expert_biases_; }

  // Copies the owned parameters to the masters. Called after weights were written by anything except the optimizer.
  void RefreshMasters();
  // The masters were loaded with the weights, which are rounded from them: the next RefreshMasters leaves them.
  void KeepMasters() { keeps_masters_ = true; }
  // At the begin of a step. `written`: by storage, whether the step writes its gradient before it adds to it, so that
  // nothing has to be cleared (planner/plan/link/first_additions.h).
  void ZeroGradients(const std::vector<bool>& written);

 private:
  const Module* module_;
  int stage_ = 0;
  bool keeps_masters_ = false;
  std::vector<BucketState> buckets_;
  std::vector<SlotTensors> storages_;
  std::vector<ExpertBias> expert_biases_;
  std::map<std::pair<std::string, std::string>, size_t> by_slot_;
};

}  // namespace planwright::executor
