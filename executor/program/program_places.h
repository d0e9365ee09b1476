// Where an instruction stands in the program of a rank: for errors, and for tests that let a rank fail.
#pragma once

#include <cstdint>
#include <string>

#include "executor/base/fail_point.h"
#include "executor/program/bound_program.h"
#include "executor/program/exit_error.h"
#include "executor/program/rank.h"
#include "planner/plan/link/linked_program.h"

namespace planwright::executor {

// A failure at an entry of `list` ("step 3"). It names rank, host, path in the program, instruction and recipe line.
ExitError FailureAt(const LinkedEntry& entry, const std::string& list, const Rank& rank, const LinkedProgram& program,
                    const BoundProgram& bound, int status, const std::string& what);

// The point of an instruction, without its moment. `step`: from 1.
FailPoint FailPointOf(const LinkedEntry& entry, const LinkedProgram& program, int64_t step);

}  // namespace planwright::executor
