// Ties the rooms of data and weights to the walker: what a rank needs before its program can start.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>

#include "executor/rank.h"

namespace planwright::executor {

// `wanted`: "cpu", "cuda", or empty: CUDA if the plan's cluster has GPUs and this executor was built for them.
absl::StatusOr<at::Device> ChooseDevice(const Plan& plan, const std::string& wanted, int local_rank);

// Handlers of the data instructions and of initialize_parameters and load_parameters. ExitError if the samples or
// weights that the plan names cannot be had.
std::function<Tensors(const Instruction&, const CallContext&)> DataHandler(const Plan& plan, at::Device device);
std::function<void(OpKind, ModuleState&)> ParameterHandler(const Plan& plan, int rank);

}  // namespace planwright::executor
