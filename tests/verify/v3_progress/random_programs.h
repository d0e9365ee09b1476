// Random plans that make progress by construction. A random sequence of collectives and exchanges is drawn for the
// whole world; each is appended to the programs of all roles that take part, so all roles have one order. Nothing
// computes. These plans reach layouts that no recipe asks for.
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"

namespace planwright::testing {

// One or two modules of up to 27 ranks each, with stages, roles split by tp coordinate, a bridge with a random table,
// exchanges of several parts, and several streams. The same seed gives the same plan.
Plan RandomPrograms(uint64_t seed);

}  // namespace planwright::testing
