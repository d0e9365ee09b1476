// What a rank holds from setup to the end is what the plan says, to the byte: two countings that share no code.
#include <gtest/gtest.h>

#include "executor/rank/finish_run.h"
#include "planner/predict/estimate/memory.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

const std::string kRecipe = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

TEST(HeldMemory, IsThatOfThePlan) {
  const std::vector<std::vector<std::string>> layouts = {
      {},
      {"precision.params=bf16"},
      {"precision.params=bf16", "modules.language.train.backbone=frozen"},
      {"precision.params=bf16", "modules.language.placement.ranks=4", "modules.language.placement.first_rank=1",
       "modules.language.parallel.tp=2", "modules.language.parallel.ep=2"},
      {"modules.language.placement.ranks=2", "modules.language.placement.first_rank=1",
       "modules.language.parallel.pp=2"},
  };
  for (const std::vector<std::string>& layout : layouts) {
    SCOPED_TRACE(layout.empty() ? "as it is" : layout.back());
    const Plan plan = testing::CompiledFile(kRecipe, layout);
    for (const RoleEstimate& estimate : EstimateMemory(plan)) {
      const int rank = estimate.role->ranks.front().first;
      std::map<std::string, ModuleState> modules;
      for (const std::string& name : estimate.role->modules)
        modules.emplace(name, ModuleState(plan, *plan.FindModule(name), rank, at::kCPU));
      const RankMemory held = HeldMemory(modules);
      EXPECT_EQ(held.parameters, estimate.planned.parameters) << estimate.role->name;
      EXPECT_EQ(held.gradients, estimate.planned.gradients) << estimate.role->name;
      EXPECT_EQ(held.optimizer, estimate.planned.optimizer) << estimate.role->name;
      EXPECT_GT(held.parameters, 0);
    }
  }
}

}  // namespace
}  // namespace planwright::executor
