// The first weights of a run that are drawn. They go through planner/plan/shard_map.h, which maps elements of published
// tensors to storages of a rank. So they do not depend on how the module is cut.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/optimizer/module_state.h"

namespace planwright::executor {

// Writes elements [first, first + count) of the random sequence of `name` to `out`. May be called from several threads.
using DrawSequence = std::function<void(const std::string& name, int64_t first, int64_t count, double* out)>;

struct Draws {
  DrawSequence uniform;  // [0, 1)
  DrawSequence normal;   // mean 0, deviation 1
  // The elements of `normal` times `scale`, rounded to bf16 as LibTorch rounds a double. Null: there is no faster way
  // than that.
  std::function<void(const std::string& name, double scale, int64_t first, int64_t count, uint16_t* out)> normal_bf16 =
      nullptr;
};

// Writes the initial values of elements [first, first + count) of the published tensor `name` to `out`, in double,
// before they are rounded to the parameter's dtype. Which values: docs/model/language_model.md#initial-values,
// docs/model/mamba.md#initial-values and docs/model/vision_encoder.md#initial-values. Draws are keyed by the published
// name (one name for each expert) and counted by the index in the whole tensor.
void InitialValues(const Init& init, const std::string& name, int64_t first, int64_t count, const Draws& draws,
                   double* out);

// Draws elements [first, first + count) of the published tensor `name` to the 1-D host tensor `out`.
void DrawElements(const Init& init, const std::string& name, int64_t first, int64_t count, const Draws& draws,
                  const at::Tensor& out);

// Draws all storages of a module, on up to `threads` threads; the number does not change a bit. Leaves the masters as
// they are: refresh_masters copies the rounded weights there. On a GPU the last copies may still be under way on the
// current stream when this returns.
void InitializeParameters(const Plan& plan, int rank, const Draws& draws, int threads, ModuleState& module);

}  // namespace planwright::executor
