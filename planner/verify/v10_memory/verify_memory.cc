// V10: the fullest moment of every rank fits its device, with expert rows at the declared imbalance. The memory
// function of `estimate` finds that moment (docs/memory.md); this rule compares it with the device.
//
// Not here: whether run-time sizes have room for what can come (verify_run_time_sizes.cc). A cluster that names no
// known device is not checked.

#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/rates/device.h"
#include "planner/verify/rules.h"

namespace planwright {

std::vector<Violation> VerifyMemory(const Plan& plan, std::vector<RoleEstimate>* memory) {
  std::vector<Violation> violations;
  if (DeviceOf(plan.cluster).memory == 0) return violations;
  std::vector<RoleEstimate> estimates = EstimateMemory(plan);
  for (const RoleEstimate& estimate : estimates) {
    const Role& role = *estimate.role;
    if (estimate.planned.total() <= estimate.limit) continue;
    std::string message =
        absl::StrCat("a rank of role ", role.name, " needs ", GigabytesText(estimate.planned.total()), ", and a ",
                     plan.cluster.gpu, " has ", GigabytesText(estimate.limit), ": ", MemoryText(estimate.planned));
    if (!estimate.fullest.empty()) absl::StrAppend(&message, "; fullest at ", estimate.fullest);
    violations.push_back({"V10", std::move(message), estimate.module ? estimate.module->origin : role.origin,
                          MemoryHelp(plan, estimate)});
  }
  if (memory) *memory = std::move(estimates);
  return violations;
}

}  // namespace planwright
