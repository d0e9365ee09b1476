#include "planner/compile/model/assign_buckets.h"

#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/model/bucket_layout.h"

namespace planwright {
namespace {

// Gradients of one kind are reduced over the same groups, so that they can share buckets.
using GradientKind = std::pair<View, TpGradient>;

int64_t Elements(const Storage& storage) {
  return std::accumulate(storage.shape.begin(), storage.shape.end(), int64_t{1}, std::multiplies<>());
}

// Adds the buckets of one stage and kind of gradient, and places `storages` in them.
void LayOutKind(const GradientKind& kind, int stage, const std::vector<int>& storages, int64_t num_buckets,
                Module& module) {
  const auto [view, tp] = kind;
  const bool expert = view == View::kExpert;
  const int shards = expert ? module.grid.expert_dp : module.grid.dp * module.grid.cp;
  std::vector<int64_t> sizes;
  for (int storage : storages) sizes.push_back(Elements(module.storages[storage]));
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  // One bucket holds everything; with several, each closes when it has its share of the elements.
  // Rounded down, so there can be one bucket more than asked for. 0: every parameter closes its bucket.
  const auto bucket_size = num_buckets > 1 ? std::optional<int64_t>(total / num_buckets) : std::nullopt;
  const BucketLayout layout = LayOutBuckets(sizes, bucket_size, shards);

  const int first = static_cast<int>(module.buckets.size());
  for (size_t i = 0; i < layout.buckets.size(); ++i) {
    Bucket bucket;
    // without pipeline stages names have no stage
    const std::string of_stage = module.grid.pp > 1 ? absl::StrCat(".s", stage) : "";
    bucket.name = absl::StrCat(module.name, of_stage, ".", std::string(ViewName(view)), ".",
                               std::string(TpGradientName(tp)), ".", i);
    bucket.view = view;
    bucket.tp = tp;
    bucket.elements = layout.buckets[i].end - layout.buckets[i].start;
    bucket.shards = shards;
    bucket.stage = stage;
    if (shards > 1) bucket.reduce_group = module.name + (expert ? ".ep_dp" : ".dp_cp");
    // All tp ranks hold these gradients: the gradient norm must count them once.
    if (tp != TpGradient::kSharded) bucket.once_over = {Axis::kTp};
    if (tp == TpGradient::kPartial) bucket.tp_group = module.name + ".tp";
    module.buckets.push_back(std::move(bucket));
  }
  // LayOutBuckets counts from the start of the first bucket; a storage's offset counts from its own bucket.
  for (size_t i = 0; i < storages.size(); ++i) {
    const auto& at = layout.parameters[i];
    Storage& storage = module.storages[storages[i]];
    storage.bucket = first + at.bucket;
    storage.offset = at.start - layout.buckets[at.bucket].start;
  }
}

}  // namespace

void AssignBuckets(int64_t num_buckets, DType dtype, DType master, const std::vector<TpGradient>& over_tp,
                   Module& module) {
  Require(over_tp.size() == module.storages.size(), "a gradient for each storage");
  // An ordered map, so that the same recipe always gives the same plan.
  std::map<std::pair<int, GradientKind>, std::vector<int>> kinds;
  for (size_t i = 0; i < module.storages.size(); ++i) {
    const Storage& storage = module.storages[i];
    const Parameter& parameter = module.parameters[storage.parameters.front()];
    if (!parameter.trained) continue;
    const GradientKind kind = {parameter.experts > 0 ? View::kExpert : View::kDense, over_tp[i]};
    kinds[{storage.stage, kind}].push_back(static_cast<int>(i));
  }
  for (const auto& [kind, storages] : kinds) LayOutKind(kind.second, kind.first, storages, num_buckets, module);
  for (Bucket& bucket : module.buckets) bucket.dtype = dtype, bucket.master = master;
}

}  // namespace planwright
