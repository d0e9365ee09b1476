#include "planner/compile/prove_plan.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/predict/estimate/memory.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

// Warns, once for each module, if the plan fits only while expert rows stay within moe.imbalance.
void LintMemory(const Plan& plan, const std::vector<RoleEstimate>& estimates, Diagnostics& diagnostics) {
  std::set<const Module*> warned;
  for (size_t i = 0; i < estimates.size(); ++i) {
    const RoleEstimate& estimate = estimates[i];
    const bool only_planned = estimate.planned.total() <= estimate.limit && estimate.worst.total() > estimate.limit;
    if (!only_planned || !warned.insert(estimate.module).second) continue;
    diagnostics.Warning(
        DiagnosticKind::kExpertRowsMayNotFit,
        LocationOf(plan, estimate.module ? estimate.module->origin : plan.roles[i].origin),
        absl::StrCat("a rank of role ", plan.roles[i].name, " needs ", GigabytesText(estimate.planned.total()),
                     " with expert rows at moe.imbalance times the mean, and would need ",
                     GigabytesText(estimate.worst.total()), " if all tokens chose its experts; a ", plan.cluster.gpu,
                     " has ", GigabytesText(estimate.limit)),
        "a step beyond moe.imbalance stops the run, with exit status 17; a larger ep or tp leaves more room");
  }
}

}  // namespace

Location LocationOf(const Plan& plan, int origin) {
  if (origin < 0 || plan.origins[origin].file.empty()) return {};
  const Origin& line = plan.origins[origin];
  return {std::make_shared<const std::string>(line.file), line.line, line.column, 1};
}

void ProvePlan(const Plan& plan, Diagnostics& diagnostics) {
  std::vector<RoleEstimate> memory;
  for (const Violation& violation : VerifyPlan(plan, &memory)) {
    const Location where = LocationOf(plan, violation.origin);
    if (!violation.help.empty()) {
      diagnostics.Error(DiagnosticKind::kDeviceTooSmall, where, violation.message, violation.help);
      continue;
    }
    diagnostics.Error(DiagnosticKind::kBrokenRule, where, absl::StrCat(violation.rule, ": ", violation.message),
                      "the compiled plan broke its own rule: please report it with the recipe");
  }
  LintMemory(plan, memory, diagnostics);
}

}  // namespace planwright
