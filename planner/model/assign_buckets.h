// Lays a module's storages out in flat gradient buckets, one run of buckets per kind of gradient (facts 5.3).
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Fills Module::buckets and each trained storage's place. `num_buckets` counts per kind of gradient.
void AssignBuckets(int64_t num_buckets, Module& module);

}  // namespace planwright
