// What a rank needs from other rooms before its program can start: the device, the samples, drawn weights and choices
// of experts.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>

#include "executor/program/rank.h"

namespace planwright::executor {

// `wanted`: the option --device, "cpu" or "cuda". If it is empty, the plan decides: CUDA if its cluster has GPUs. Makes
// a CUDA device current. InvalidArgument if the device cannot be had; a plan for GPUs never falls back to CPUs
// silently.
absl::StatusOr<at::Device> ChooseDevice(const Plan& plan, const std::string& wanted, int local_rank);

// Sets Handlers::data and data_of_steps: samples are read ahead. This opens the files of samples: ExitError
// (kExitUsage) if they are missing or do not fit the plan. If a sample cannot be read later, `data` throws the same.
void ReadSamples(const Plan& plan, at::Device device, Handlers& handlers);

// Carries out initialize_parameters.
void DrawParameters(const Plan& plan, int rank, ModuleState& module);

// Sets Handlers::record_routing or replay_routing. `record`, `replay`: folders; at most one is not empty. They throw
// ExitError: kExitStorage if choices cannot be written, kExitUsage if they cannot be read or are not those of this run.
void FollowRouting(const std::string& record, const std::string& replay, Handlers& handlers);

}  // namespace planwright::executor
