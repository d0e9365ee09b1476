// The blocks of a module, derived: each from the statement of its piece, the entries of ops.def and the module's grid.
#pragma once

#include "planner/compile/schedule/blocks/layer_blocks.h"
#include "planner/compile/schedule/derive/block_inputs.h"
#include "planner/plan/plan.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// `statement`: of the module's model. `overlaps_dispatch`: of the recipe. It changes the order of instructions only
// where tokens travel.
ModuleBlocks DeriveModule(const BlockInputs& inputs, const Module& module, const ModelStatement& statement,
                          bool overlaps_dispatch);

}  // namespace planwright
