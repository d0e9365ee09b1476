// `launch.env` and `launch.setup`: the variables that a recipe gives its ranks, and the lines of a shell that run
// before them. What the launcher sets itself is not among them (docs/jobs.md#environment).
#pragma once

#include <string>
#include <string_view>

#include "planner/plan/plan.h"

namespace planwright {

struct EnvironmentProblem {
  std::string what, help;  // "`RANK=0`: the launcher numbers ranks"; both empty: there is none
  bool taken = false;      // the launcher sets this variable; false: it is no variable
};

// What is wrong with one entry of launch.env: "NAME=VALUE", or "NAME", whose value is that of the shell that launches.
EnvironmentProblem EnvironmentEntryProblem(std::string_view entry);

// "NCCL_DEBUG" of "NCCL_DEBUG=INFO" and of "NCCL_DEBUG".
std::string_view VariableOf(std::string_view entry);
// Whether the entry has no value of its own.
bool IsPassedOn(std::string_view entry);

// What is wrong with a line of launch.setup: it sets what the launcher sets.
EnvironmentProblem SetupLineProblem(std::string_view line);

// The first problem of both lists, with a variable that is there twice: "launch.env: ...; HELP"; empty without one.
std::string EnvironmentProblemOf(const LaunchPlan& launch);

// Whether libraries that a rank uses read the variable (NCCL_DEBUG, UCX_TLS, OMP_NUM_THREADS, LD_LIBRARY_PATH), or the
// programs of Planwright do: it can change what a rank does. Never a secret of a run.
bool IsLibraryVariable(std::string_view name);

}  // namespace planwright
