// Lays a module's storages out in flat gradient buckets, one run of buckets per kind of gradient (facts 5.3).
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Fills Module::buckets and each trained storage's place. `num_buckets` counts per kind of gradient; `dtype` and
// `master` are those of the plan.
void AssignBuckets(int64_t num_buckets, DType dtype, DType master, Module& module);

}  // namespace planwright
