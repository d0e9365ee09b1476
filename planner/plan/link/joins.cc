#include "planner/plan/link/joins.h"

namespace planwright {

Join JoinOf(OpKind first, OpKind second) {
#define JOIN(one, other) \
  if (first == OpKind::k##one && second == OpKind::k##other) return Join::kPasses;
#define JOIN_KEEPING(one, other) \
  if (first == OpKind::k##one && second == OpKind::k##other) return Join::kKeeps;
#include "planner/plan/link/joins.def"
#undef JOIN
#undef JOIN_KEEPING
  return Join::kNone;
}

bool TakesJoinedForms(const Plan& plan) { return plan.cluster.gpu != "none" && plan.dtype() == DType::kBf16; }

}  // namespace planwright
