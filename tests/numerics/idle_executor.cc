// The executor without training: a step begins and does nothing more. So a run that goes on from a checkpoint saves
// again what it has loaded, in its own layout (reshard_test.cc).
#include "executor/ops/forms.h"
#include "executor/rank/rank_main.h"
#include "planner/plan/plan_json.h"

namespace planwright::executor {
namespace {

absl::Status TakeOutTraining(Plan& plan) {
  for (Role& role : plan.roles)
    std::erase_if(role.step, [](const Instruction& op) { return op.kind != OpKind::kBeginStep; });
  plan.digest = PlanDigest(plan);  // it lies in the checkpoints that are written
  return absl::OkStatus();
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) {
  using namespace planwright::executor;
  return RankMain(argc, argv, {.compute = ChooseForm, .prepare = TakeOutTraining});
}
