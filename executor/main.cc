// The `executor` program: one rank of a run.
#include <csignal>

#include "executor/ops/joined_forms.h"
#include "executor/rank/rank_main.h"
#include "planner/base/process/inherited.h"
#include "planner/verify/verify.h"

namespace planwright::executor {
namespace {

// Refuses a plan that breaks a rule. The compiler has verified it already, but the file may have been changed since.
absl::Status CheckPlan(Plan& plan) {
  const std::vector<Violation> violations = VerifyPlan(plan);
  if (violations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the plan breaks rule " + violations.front().rule + ": " +
                                    violations.front().message);
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  planwright::SettleInherited({SIGUSR1});  // its launcher blocks it until the rank listens
  return RankMain(argc, argv, {.compute = ChooseForm, .joined = ChooseJoinedForm, .prepare = CheckPlan});
}
