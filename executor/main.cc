// The `executor` program: one rank of a run.
#include "executor/op_table.h"
#include "executor/rank_main.h"
#include "planner/plan/unsupported_features.h"
#include "planner/verify/verify.h"

namespace planwright::executor {
namespace {

// The rules that the compiler proved hold for the file as it was loaded, too.
absl::Status Prove(Plan& plan) {
  if (const std::vector<UnsupportedFeature> lacks = UnsupportedFeatures(plan); !lacks.empty()) {
    return absl::UnimplementedError("this version of the executor does not run " + lacks.front().what);
  }
  const std::vector<Violation> violations = VerifyPlan(plan);
  if (violations.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the plan breaks rule " + violations.front().rule + ": " +
                                    violations.front().message);
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  return RankMain(argc, argv, {.compute = ComputeHandlerOf, .prepare = Prove});
}
