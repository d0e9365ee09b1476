// How often the host of a rank must wait for its device before it can launch more work.
#pragma once

#include <cstdint>

#include "planner/plan/link/linked_program.h"

namespace planwright {

// Whether the host has to wait for an instruction of a block before it can launch more: see CountHostWaits.
bool HostWaitsFor(const LinkedBlock& block, const LinkedInstruction& instruction);

// Counts, in one step, the instructions that make a value in host memory from a value on the device, or that receive it
// from other ranks. Later instructions need its numbers (rows for each expert rank) before they can be launched, so
// launching stops until the copy to the host is done.
int64_t CountHostWaits(const LinkedProgram& program);

}  // namespace planwright
