// How much of a rank's part of the vocabulary is there.
#pragma once

#include <algorithm>

#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// How many of the `columns` logits of a token on this rank are those of ids: all, unless tp does not divide the
// vocabulary (attribute vocabulary). The others are behind them.
inline int64_t IdsOf(const ComputeContext& context, int64_t columns) {
  const int64_t* vocabulary = context.instruction.FindInteger("vocabulary");
  if (!vocabulary) return columns;
  return std::clamp<int64_t>(*vocabulary - context.call.tp_rank * columns, 0, columns);
}

}  // namespace planwright::executor::ops
