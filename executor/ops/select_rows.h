// What both forms of select_rows share: the number of rows and their order
// (docs/model/mixture_of_experts.md#order-of-rows).
#pragma once

#include <cstdint>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// X of select_rows, from the counts, which the host has. c10::Error if these fit neither the slots nor the ep ranks.
int64_t RowsHere(const ComputeContext& context);

// For each slot of the tokens of all `ranks` ep ranks, i64 [slots]: source rank * local + local expert, or
// ranks * local for an expert of another rank than `rank`. Rows come in the order of these numbers, and slots of one
// number as they are. ids i64 [N,k]; each rank has `local` experts and an equal part of the tokens.
at::Tensor OrderKeysOfSlots(const at::Tensor& ids, int64_t local, int64_t rank, int64_t ranks);

}  // namespace planwright::executor::ops
