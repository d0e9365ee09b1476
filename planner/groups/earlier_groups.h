// Groups of a plan of an earlier version that this version does not make any more.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Each module of a plan used to have six more groups, which no program used (docs/decisions/0014). Takes them out, and
// gives the plan the digest that it then has: what ranks do is the same. So a plan that was compiled before, in a file,
// a run directory or a checkpoint, is still proven, run and compared. A group that some program uses, or of other axes,
// stays, and verify refuses it.
void DropEarlierGroups(Plan& plan);

}  // namespace planwright
