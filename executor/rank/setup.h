// What a rank needs from other rooms before its program can start: the device, the samples, and the first weights.
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

// The functions of Handlers::data and Handlers::parameters. Making the data handler opens the files of samples, running
// the parameter handler those of weights: ExitError (kExitUsage) if they are missing or do not fit the plan.
std::function<Tensors(const Instruction&, const CallContext&)> MakeDataHandler(const Plan& plan, at::Device device);
std::function<void(OpKind, ModuleState&)> MakeParameterHandler(const Plan& plan, int rank);

// Sets Handlers::record_routing or replay_routing. `record`, `replay`: folders; at most one is not empty.
void FollowRouting(const std::string& record, const std::string& replay, Handlers& handlers);

}  // namespace planwright::executor
