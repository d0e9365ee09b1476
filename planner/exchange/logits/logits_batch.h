// The batch that a run of ours reads to compute the logits of the same tokens.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "planner/exchange/logits/reference_logits.h"
#include "planner/plan/plan.h"

namespace planwright {

// Writes a recorded batch (docs/training/data.md#recorded) with a sample for each sequence. A sample has `length`
// positions, not fewer than the longest sequence has: behind its tokens they come again and again. No earlier position
// sees them, and they choose experts as other tokens do. Encoders of `plan` get no image. Errors of WriteSafetensors.
absl::Status WriteLogitsBatch(const ReferenceLogits& logits, const Plan& plan, int64_t length, const std::string& path);

}  // namespace planwright
