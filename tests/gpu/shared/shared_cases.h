// What is tried on ranks that share a device, in groups. docs/gpu.md#many-ranks-on-one-gpu says what each group is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/gpu/shared/shared_runs.h"

namespace planwright::testing {

struct SharedCase {
  std::string group, name;  // of letters, digits, '_', '.' and '-'
  std::function<SharedResult(SharedRuns&)> run;
};

// Layouts against one rank: random recipes, random streams, overlap, both kinds of dispatch, packed documents,
// recompute, and every layout in bf16, fp32 and fp64.
std::vector<SharedCase> CurveCases();
// Runs that stop and go on, on the same layout and on others, and runs that start from weights of another one.
std::vector<SharedCase> CheckpointCases();
// Ranks that die: a sample of the kill matrix, and rows of experts beyond what memory is planned for.
std::vector<SharedCase> FailureCases();

// What a step costs, beside how often ranks communicate.
std::vector<SharedCase> TimeCases();

// All of them, those first that take least to say most.
std::vector<SharedCase> SharedCases();

}  // namespace planwright::testing
