// The handlers of a rank that read samples, draw weights, and write or read choices of experts (Handlers in
// program/rank.h).
#pragma once

#include <string>

#include "executor/program/rank.h"

namespace planwright::executor {

// Sets Handlers::data and data_of_steps: samples are read ahead. This opens the files of samples: ExitError
// (kExitUsage) if they are missing or do not fit the plan. If a sample cannot be read later, `data` throws the same.
void ReadSamples(const Plan& plan, at::Device device, Handlers& handlers);

// Carries out initialize_parameters.
void DrawParameters(const Plan& plan, int rank, ModuleState& module);

// Sets Handlers::record_routing or replay_routing. `record`, `replay`: folders; at most one is not empty. They throw
// ExitError: kExitStorage if choices cannot be written, kExitUsage if they cannot be read or are not those of this run.
void FollowRouting(const std::string& record, const std::string& replay, Handlers& handlers);

}  // namespace planwright::executor
