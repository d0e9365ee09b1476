// Makes what a module holds from the statement of its model: parameters with published names, shapes, cuts and draws,
// the storages of a rank, and FLOPs.
#pragma once

#include "planner/plan/plan.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// Fills the parameters, storages and counts of `module`, and those of its layers. Its name, grid, constants, frozen
// parts and the kinds, frames and stages of its layers must be set; every cut must divide (PW0209). `numbers`: of this
// module. `several_encoders`: published names of an encoder start with the module's name.
void ExpandStatement(const ModelStatement& statement, const ModelNumbers& numbers, bool several_encoders,
                     Module& module);

// Fills the FLOPs of `module` and of its layers. `data`: has the images that an encoder's FLOPs are an average over.
// `sequence`: tokens of a sample.
void CountFlops(const ModelStatement& statement, const ModelNumbers& numbers, const DataPlan& data, int64_t sequence,
                Module& module);

}  // namespace planwright
