#include "planner/plan/link/joins.h"

namespace planwright {
namespace {

Join OfKinds(OpKind first, OpKind second) {
#define JOIN(one, other) \
  if (first == OpKind::k##one && second == OpKind::k##other) return Join::kPasses;
#define JOIN_KEEPING(one, other) \
  if (first == OpKind::k##one && second == OpKind::k##other) return Join::kKeeps;
#include "planner/plan/link/joins.def"
#undef JOIN
#undef JOIN_KEEPING
  return Join::kNone;
}

}  // namespace

Join JoinOf(const Instruction& first, const Instruction& second) {
  if (second.kind == OpKind::kAdd && second.inputs.size() != 2) return Join::kNone;
  if (const int64_t* exact = second.FindInteger("erf"); exact != nullptr && *exact != 0) return Join::kNone;
  return OfKinds(first.kind, second.kind);
}

bool TakesJoinedForms(const Plan& plan) { return plan.cluster.gpu != "none" && plan.dtype() == DType::kBf16; }

}  // namespace planwright
