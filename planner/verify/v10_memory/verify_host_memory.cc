// V10 of host memory: what the ranks of a node need, with the copies of a checkpoint, fits what the cluster gives them,
// and copies have room for at least a piece. How much that is, `estimate` says (docs/memory.md#host-memory).
//
// Not here: whether the share of a rank is the largest that fits. A smaller one only makes training wait longer.

#include "planner/predict/estimate/host_memory.h"
#include "planner/verify/rules.h"

namespace planwright {

std::vector<Violation> VerifyHostMemory(const Plan& plan) {
  const std::optional<HostShortage> shortage = FindHostShortage(plan);
  if (!shortage) return {};
  return {{"V10", shortage->problem, -1}};
}

}  // namespace planwright
