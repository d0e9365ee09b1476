// V3: no rank waits for ever. With any timing every rank reaches the end of its program, every collective meets
// equal collectives, and every message has one sender and one receiver that agree on it. docs/progress.md is the
// argument that this proof over roles holds for all ranks.
//
// Not here: what is in a message. Row counts of run time are V5's (verify_meanings.cc), and so is the microbatch
// that a transfer carries (verify_microbatches.cc).

#include "planner/verify/rules.h"
#include "planner/verify/v3_progress/progress_proof.h"

namespace planwright {

std::vector<Violation> VerifyProgress(const Plan& plan) {
  CommunicationTraces traces(plan);
  CommunicationPartners partners(plan);
  for (const RoleList& part : kRoleLists) {
    // Each list begins and ends with nothing under way, so lists one after the other, and steps one after the other,
    // are in order too.
    if (auto violations = ProgressProof(plan, traces, partners, part.name, part.list).Run(); !violations.empty())
      return violations;
  }
  return {};
}

}  // namespace planwright
