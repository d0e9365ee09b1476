#include "executor/optimizer/module_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "executor/base/tensors.h"
#include "planner/plan/optimizer_states.h"
#include "planner/plan/shard_map.h"

namespace planwright::executor {
namespace {

// Divides elements [first, end) of bucket `index` in ranges that decay and ranges that do not. Neighbours that both
// decay are joined, so that the optimizer makes few calls. Padding between storages does not decay.
std::vector<DecayRange> DecayRangesOf(const Module& module, int index, int64_t first, int64_t end) {
  std::vector<DecayRange> decaying;
  for (const Storage& storage : module.storages) {
    if (storage.bucket != index) continue;
    // A storage decays as a whole: all parameters that it joins must have the same rule.
    const bool decay = module.parameters[storage.parameters.at(0)].decay;
    for (int parameter : storage.parameters) {
      TORCH_CHECK(module.parameters[parameter].decay == decay, storage.frame, ".", storage.slot,
                  " joins parameters that decay with parameters that do not");
    }
    // The part of the storage that lies in this shard; it may be empty.
    const int64_t from = std::max(storage.offset, first),
                  to = std::min(storage.offset + ElementsOf(storage.shape), end);
    if (from < to && decay) decaying.push_back({from - first, to - first, true});
  }
  std::sort(decaying.begin(), decaying.end(),
            [](const DecayRange& a, const DecayRange& b) { return a.first < b.first; });
  std::vector<DecayRange> ranges;
  int64_t at = 0;
  for (const DecayRange& range : decaying) {
    if (at < range.first) ranges.push_back({at, range.first, false});
    if (!ranges.empty() && ranges.back().decay) {
      ranges.back().end = range.end;
    } else {
      ranges.push_back(range);
    }
    at = range.end;
  }
  if (at < end - first) ranges.push_back({at, end - first, false});
  return ranges;
}

at::Tensor TableOf(const std::vector<DecayRange>& ranges, at::Device device) {
  const at::Tensor table = at::empty({static_cast<int64_t>(ranges.size()), 2}, at::kLong);
  int64_t* row = table.mutable_data_ptr<int64_t>();
  for (const DecayRange& range : ranges) *row++ = range.end, *row++ = range.decay ? 1 : 0;
  return ToDevice(table, device);
}

BucketState MakeBucket(const Plan& plan, const Module& module, int index, int rank, at::Device device) {
  const Bucket& bucket = module.buckets[index];
  TORCH_CHECK(bucket.elements % bucket.shards == 0, "bucket ", bucket.name, " of ", bucket.elements,
              " elements cannot be cut in ", bucket.shards, " equal shards");
  const at::TensorOptions wide = at::TensorOptions(device).dtype(ScalarTypeOf(bucket.master));
  const int64_t owned = bucket.elements / bucket.shards;
  BucketState state;
  state.shard_first = owned * ShardIndexOf(plan, module, bucket, rank);
  state.shard_end = state.shard_first + owned;
  state.parameters = at::zeros({bucket.elements}, wide.dtype(ScalarTypeOf(bucket.dtype)));
  state.gradients = at::zeros({bucket.elements}, wide);
  state.parameter_shard = state.parameters.narrow(0, state.shard_first, owned);
  // With one shard nothing is scattered, and the reduction is in place.
  state.gradient_shard = bucket.shards == 1 ? state.gradients : at::zeros({owned}, wide);
  state.master = state.parameter_shard;
  for (std::string_view name : HeldStates(plan.optimizer, bucket.dtype, bucket.master)) {
    at::Tensor held = at::zeros({owned}, wide);
    if (name == "master")
      state.master = std::move(held);
    else
      state.states.emplace(name, std::move(held));
  }
  state.ranges = DecayRangesOf(module, index, state.shard_first, state.shard_end);
  state.range_table = TableOf(state.ranges, device);
  // Replicas of a shard exist along the axes of once_over; the ranks at coordinate 0 count it.
  state.counted = std::all_of(bucket.once_over.begin(), bucket.once_over.end(),
                              [&](Axis axis) { return CoordinateOf(module.grid, rank, axis) == 0; });
  return state;
}

}  // namespace

ModuleState::ModuleState(const Plan& plan, const Module& module, int rank, at::Device device)
    : module_(&module), stage_(CoordinateOf(module.grid, rank, Axis::kPp)), buckets_(module.buckets.size()),
      storages_(module.storages.size()) {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (has_bucket(i)) buckets_[i] = MakeBucket(plan, module, static_cast<int>(i), rank, device);
  }
  for (size_t i = 0; i < storages_.size(); ++i) {
    if (!has_storage(i)) continue;
    const Storage& storage = module.storages[i];
    SlotTensors& tensors = storages_[i];
    const int64_t elements = ElementsOf(storage.shape);
    if (storage.bucket >= 0) {
      BucketState& bucket = buckets_.at(storage.bucket);
      TORCH_CHECK(storage.offset >= 0 && storage.offset + elements <= bucket.parameters.numel(), storage.frame, ".",
                  storage.slot, " does not fit its bucket");
      // Views: the optimizer steps whole buckets, and handlers see the new weights through these.
      tensors.parameter = bucket.parameters.narrow(0, storage.offset, elements).view(storage.shape);
      tensors.gradient = bucket.gradients.narrow(0, storage.offset, elements).view(storage.shape);
    } else {
      // In no bucket: an expert bias or a frozen weight. The bias takes tiny updates, which bf16 would lose, so it has
      // the master dtype. A frozen weight has the dtype of all weights.
      const bool bias = module.parameters[storage.parameters.at(0)].buffer;
      tensors.parameter =
          at::zeros(storage.shape, at::TensorOptions(device).dtype(ScalarTypeOf(bias ? plan.master() : plan.dtype())));
    }
    by_slot_[{storage.frame, storage.slot}] = i;
    for (const SharedSlot& shared : storage.shared) by_slot_[{shared.frame, shared.slot}] = i;
  }
  for (const LayerSummary& layer : module.layers) {
    // expert_row: the layer has experts, and this is its row in the counts.
    const auto bias = layer.expert_row >= 0 ? by_slot_.find({layer.frame, "gate_bias"}) : by_slot_.end();
    if (bias != by_slot_.end()) expert_biases_.push_back({&layer, storages_[bias->second].parameter});
  }
}

const SlotTensors& ModuleState::slot(const std::string& frame, const std::string& slot) const {
  const auto it = by_slot_.find({frame, slot});
  TORCH_CHECK(it != by_slot_.end(), "frame ", frame, " has no slot ", slot);
  return storages_[it->second];
}

void ModuleState::RefreshMasters() {
  if (std::exchange(keeps_masters_, false)) return;
  for (BucketState& bucket : buckets_) {
    if (bucket.master.defined() && !bucket.master.is_alias_of(bucket.parameter_shard))
      bucket.master.copy_(bucket.parameter_shard);
  }
}

void ModuleState::ZeroGradients() {
  for (BucketState& bucket : buckets_) {
    if (bucket.gradients.defined()) bucket.gradients.zero_();
  }
}

}  // namespace planwright::executor
