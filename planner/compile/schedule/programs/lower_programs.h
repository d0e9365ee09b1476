// Everything that ranks do: the blocks of each module, and one program for each role.
#pragma once

#include <optional>
#include <vector>

#include "planner/compile/schedule/blocks/layer_blocks.h"
#include "planner/compile/schedule/programs/program_inputs.h"
#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

struct Programs {
  std::vector<Accumulator> accumulators;
  std::vector<Symbol> symbols;
  std::vector<StageSchedule> schedule;  // without the backwards of stages where nothing learns
  std::vector<Block> blocks;
  std::vector<Role> roles;
};

// `blocks`: of each module (derive_module.h). Nothing, and a problem (PW0105), when the programs are longer than
// limits.h allows.
std::optional<Programs> LowerPrograms(const Recipe& recipe, const ProgramInputs& inputs,
                                      std::vector<ModuleBlocks> blocks, Diagnostics& diagnostics);

}  // namespace planwright
