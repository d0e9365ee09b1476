// The formulas of the routed experts (experts.cc), for any way to sort and multiply their rows.
#pragma once

#include "executor/ops/expert_rows.h"
#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// The results of `experts` and of `experts_grad`, with the products and orders of `order`.
Tensors ExpertsOfRows(const ExpertRows& order, const ComputeContext& context);
Tensors ExpertsGradOfRows(const ExpertRows& order, const ComputeContext& context);

}  // namespace planwright::executor::ops
