// Parts of a plan of an earlier version that this version does not make any more.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Takes them out, and gives the plan the digest that it then has: what ranks do is the same. So a plan that was
// compiled before, in a file, a run directory or a checkpoint, is still proven, run and compared.
//
//   groups     Each module had six more, which no program used (docs/decisions/0014). A group that some program uses,
//              or of other axes, stays.
//   gradients  `pre` of experts declared one, with its own layout, though it is made and used inside experts_grad
//              (docs/decisions/0015). One with another layout stays.
//
// Verify refuses what stays.
void DropEarlierParts(Plan& plan);

}  // namespace planwright
