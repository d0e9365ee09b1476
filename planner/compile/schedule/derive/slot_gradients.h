// Which buckets the weights of a module belong to, by what its backward adds to their gradients.
#pragma once

#include <vector>

#include "planner/compile/schedule/blocks/layer_blocks.h"
#include "planner/plan/plan.h"

namespace planwright {

// How the ranks along tp hold the gradient of each storage of the module (AssignBuckets). Storages whose weights do not
// learn have none: sharded. The gradients of experts are of the expert view, whatever tp: sharded.
std::vector<TpGradient> GradientsOverTp(const Module& module, const ModuleBlocks& blocks);

}  // namespace planwright
