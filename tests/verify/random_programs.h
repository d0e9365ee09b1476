// Plans of random grids whose programs make progress by construction: a random sequence of meetings of the whole world,
// each dealt to the roles that take part. Nothing in them computes. They reach shapes that no recipe asks for.
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"

namespace planwright::testing {

// One or two modules of up to 24 ranks each, stages, roles split by tp coordinate, a bridge with a random table,
// exchanges of several parts, streams and events.
Plan RandomPrograms(uint64_t seed);

}  // namespace planwright::testing
