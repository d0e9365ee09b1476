#include "executor/optimizer/module_state.h"

#include <ATen/ops/_foreach_zero.h>
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

StepRule RuleOf(const Parameter& parameter) { return {parameter.decay, parameter.part}; }

// Adds a range behind the others, or makes the last one longer where both have one rule, so that the optimizer makes
// few calls.
void Append(std::vector<RatedRange>& ranges, const RatedRange& range) {
  if (range.first >= range.end) return;
  if (!ranges.empty() && ranges.back().end == range.first && ranges.back().rule == range.rule) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

// Adds the elements of a storage, from the bucket's start. A storage that joins parameters of several rules is cut
// where they meet: once, or for stacked experts once in each of them.
void AppendStorage(const Module& module, const Storage& storage, const ShardCoordinates& coordinates,
                   std::vector<RatedRange>& ranges) {
  const StepRule first = RuleOf(module.parameters[storage.parameters.at(0)]);
  const bool same = std::all_of(storage.parameters.begin(), storage.parameters.end(),
                                [&](int index) { return RuleOf(module.parameters[index]) == first; });
  if (same) return Append(ranges, {storage.offset, storage.offset + ElementsOf(storage.shape), first});
  for (const PublishedSlice& slice : SlicesOf(module, storage, coordinates)) {
    for (const ElementRun& run : slice.runs) {
      const int64_t from = storage.offset + run.local;
      Append(ranges, {from, from + run.count, RuleOf(module.parameters[slice.parameter])});
    }
  }
}

// Divides elements [first, end) of bucket `index` in ranges of one rule. What lies between storages is stepped with the
// rates of the schedule: it is 0, and so is its gradient.
std::vector<RatedRange> RangesOf(const Module& module, int index, int64_t first, int64_t end, int rank) {
  const ShardCoordinates coordinates = CoordinatesOf(module.grid, rank);
  std::vector<RatedRange> of_storages;
  for (const Storage& storage : module.storages) {
    const bool reached = storage.offset < end && storage.offset + ElementsOf(storage.shape) > first;
    if (storage.bucket == index && reached) AppendStorage(module, storage, coordinates, of_storages);
  }
  std::sort(of_storages.begin(), of_storages.end(),
            [](const RatedRange& a, const RatedRange& b) { return a.first < b.first; });
  std::vector<RatedRange> ranges;
  int64_t at = first;
  for (const RatedRange& range : of_storages) {
    const int64_t from = std::max(range.first, first), to = std::min(range.end, end);
    if (from >= to) continue;
    Append(ranges, {at - first, from - first, {}});
    Append(ranges, {from - first, to - first, range.rule});
    at = to;
  }
  Append(ranges, {at - first, end - first, {}});
  return ranges;
}

at::Tensor TableOf(const std::vector<RatedRange>& ranges, at::Device device) {
  const at::Tensor table = at::empty({static_cast<int64_t>(ranges.size()), 2}, at::kLong);
  int64_t* row = table.mutable_data_ptr<int64_t>();
  for (const RatedRange& range : ranges)
    *row++ = range.end, *row++ = 2 * (range.rule.part + 1) + (range.rule.decay ? 1 : 0);
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
  state.ranges = RangesOf(module, index, state.shard_first, state.shard_end, rank);
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

// What lies between storages is 0 and stays so.
void ModuleState::ZeroGradients(const std::vector<bool>& written) {
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < storages_.size(); ++i) {
    if (storages_[i].gradient.defined() && !written[i]) gradients.push_back(storages_[i].gradient);
  }
  if (!gradients.empty()) at::_foreach_zero_(gradients);  // many small ones in a few launches
}

}  // namespace planwright::executor
