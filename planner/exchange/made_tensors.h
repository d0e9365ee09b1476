// Tensors that a folder needs and that no run has: transformers would draw them at random, or lists them as missing
// (docs/hugging_face.md#what-is-made-up).
#pragma once

#include <string>
#include <vector>

#include "planner/exchange/model_sizes.h"
#include "planner/exchange/out_tensor.h"
#include "planner/exchange/read_model.h"
#include "planner/plan/instruction.h"

namespace planwright {

// How the class tokens of an encoder are told apart. A run does not: what an image token computes does not depend on
// it.
struct ClassTokenSplit {
  int64_t cls = 0, registers = 0;
  std::vector<int64_t> summary;  // indices of class tokens
};
ClassTokenSplit SplitClassTokens(int64_t class_tokens);

inline constexpr int64_t kVideoFrames = 2;  // that one patch of a video has

// Those of an encoder in a folder of this kind. Adds a line for each kind of them to `made_up`.
std::vector<OutTensor> MadeTensors(const EncoderSizes& encoder, ConfigKind kind, DType dtype,
                                   std::vector<std::string>& made_up);

}  // namespace planwright
