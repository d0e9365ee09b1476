// The formulas of the routed experts (experts.cc, gated_experts.cc), for any way to sort and multiply their rows.
#pragma once

#include "executor/ops/expert_rows.h"
#include "executor/ops/handler.h"

namespace planwright::executor::ops {

// The results of `experts` and of `experts_grad`, with the products and orders of `order`.
Tensors ExpertsOfRows(const ExpertRows& order, const ComputeContext& context);
Tensors ExpertsGradOfRows(const ExpertRows& order, const ComputeContext& context);
// Those of `gated_experts` and of `gated_experts_grad`.
Tensors GatedExpertsOfRows(const ExpertRows& order, const ComputeContext& context);
Tensors GatedExpertsGradOfRows(const ExpertRows& order, const ComputeContext& context);

}  // namespace planwright::executor::ops
