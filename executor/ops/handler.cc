#include "executor/ops/handler.h"

#include <ATen/ops/empty_like.h>

namespace planwright::executor {

LaneSamples CallContext::lane_samples() const {
  const Budget& budget = plan->budget;
  const LaneSamples part = SamplesOfLane(budget.block_samples, lanes, lane);
  const int64_t first =
      evaluation >= 0 ? step * budget.block_samples : step * budget.global_samples + microbatch * budget.block_samples;
  return {first + part.first, first + part.end};
}

CallContext::AxisCoordinate CallContext::CoordinateAlong(std::string_view axis) const {
  if (axis == "cp") return {cp, cp_rank};
  TORCH_CHECK(axis == "tp", "values of blocks are cut along tp or cp, not along ", std::string(axis));
  return {tp, tp_rank};
}

at::Tensor ComputeContext::OutputOver(size_t index) const {
  const at::Tensor& input = inputs[index];
  if (!overwrites) return at::empty_like(input);
  // The plan knows nothing of tensors that share memory: no handler that makes such an input may return a view.
  TORCH_CHECK(input.storage().use_count() == 1, "input ", index, " is to be overwritten, but shares its memory");
  return input;
}

ComputeHandler PlainFormOf(OpKind kind) {
  // One entry for each kind, in the order of the table, which is that of the enum.
  static constexpr ComputeHandler kHandlers[] = {
#define OP(id, name, op_class, text) OP_##op_class(id)
#define OP_kControl(id) nullptr,
#define OP_kData(id) nullptr,
#define OP_kCompute(id) &ops::Run##id,
#define OP_kCommunication(id) nullptr,
#define OP_kState(id) nullptr,
#define OP_kStorage(id) nullptr,
#include "planner/plan/ops.def"
#undef OP_kControl
#undef OP_kData
#undef OP_kCompute
#undef OP_kCommunication
#undef OP_kState
#undef OP_kStorage
#undef OP
  };
  return kHandlers[static_cast<int>(kind)];
}

}  // namespace planwright::executor
