// Puts the storages of a module into gradient buckets, with separate buckets for each stage and each kind of gradient
// (docs/training/step.md#gradient-buckets).
#pragma once

#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// Fills Module::buckets, and the bucket and offset of each trained storage. `num_buckets`: for each stage and kind of
// gradient. `dtype` and `master`: the types of parameters and of master weights in the plan. `over_tp`: how the ranks
// along tp hold the gradient of each storage (compile/schedule/derive/slot_gradients.h).
void AssignBuckets(int64_t num_buckets, DType dtype, DType master, const std::vector<TpGradient>& over_tp,
                   Module& module);

}  // namespace planwright
