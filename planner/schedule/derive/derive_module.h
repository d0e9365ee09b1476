// The blocks of a module, derived: each from the statement of its piece, the entries of ops.def and the module's grid.
#pragma once

#include "planner/plan/plan.h"
#include "planner/schedule/blocks/layer_blocks.h"
#include "planner/schedule/programs/program_inputs.h"

namespace planwright {

// `overlaps_dispatch`: of the recipe. It changes the order of instructions only where tokens travel.
ModuleBlocks DeriveModule(const ProgramInputs& inputs, const Module& module, bool overlaps_dispatch);

}  // namespace planwright
