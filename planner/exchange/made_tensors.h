// Tensors that a folder needs and that no run has: transformers would draw them at random, or lists them as missing
// (docs/hugging_face.md#what-is-made-up).
#pragma once

#include <string>
#include <vector>

#include "planner/exchange/out_tensor.h"
#include "planner/exchange/said_model.h"
#include "planner/plan/instruction.h"

namespace planwright {

// Those that the dialects of a config.json make. `read`: what was read of it. Adds what is told of them to `made_up`.
std::vector<OutTensor> MadeTensors(const SaidModel& read, DType dtype, std::vector<std::string>& made_up);

}  // namespace planwright
