// First weights: drawn, or loaded. Both fill whole published tensors' parts through the one map of shard_map.h, so they
// do not depend on how the module is cut.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"

namespace planwright::executor {

// Elements [first, first + count) of the random sequence of a name, in double.
using DrawSequence = std::function<void(const std::string& name, int64_t first, int64_t count, double* out)>;

struct Draws {
  DrawSequence uniform;  // [0, 1)
  DrawSequence normal;   // mean 0, deviation 1
};

// Fills `out` with initial values of elements [first, first + count) of the tensor `name`, before rounding to its dtype
// (facts 3.3, 3.5, Init in plan.h). Draws are keyed by the parameter's own name (experts one by one) and counted by the
// unsharded index.
void InitialValues(const Init& init, const std::string& name, int64_t first, int64_t count, const Draws& draws,
                   double* out);

// Fills every storage; masters are left as they are. The masters of a narrow parameter start from the rounded weight.
void InitializeParameters(const Plan& plan, int rank, const Draws& draws, ModuleState& module);

// A tensor of a weights file.
struct SourceTensor {
  std::vector<int64_t> shape;
  std::function<at::Tensor()> read;  // on the host
};

// The names a whole plan's parameters have in a weights file, with their shapes.
std::map<std::string, std::vector<int64_t>> WantedTensors(const Plan& plan);

// Strict: every parameter of every module has a source of its shape, and every tensor of the file is one of them or in
// `ignore`. InvalidArgument lists all that does not fit at once.
absl::Status CheckSources(const Plan& plan, const std::map<std::string, SourceTensor>& sources);

// Fills every storage from `sources`, which CheckSources has passed.
void LoadParameters(const Plan& plan, int rank, const std::map<std::string, SourceTensor>& sources,
                    ModuleState& module);

}  // namespace planwright::executor
