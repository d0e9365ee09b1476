// How often a rank's host must wait for its device before it can launch on.
#pragma once

#include <cstdint>

#include "planner/link/linked_program.h"

namespace planwright {

// In a steady step: how often a value in host memory is made from a device value, or comes from other ranks. Later
// instructions need its numbers (rows per expert rank), so launching stops until its copy has come.
int64_t HostWaits(const LinkedProgram& program);

}  // namespace planwright
