#include "planner/estimate/planned_step.h"

#include <gtest/gtest.h>

#include "planner/compile.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// Each forward and backward is filled by its products, from its begin to its end, one after the other.
TEST(PlannedStep, ProductsFillTheirActions) {
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"));
  const StepTime time = TimeStep(plan);
  ASSERT_TRUE(time.seconds);
  LinkedBlocks blocks(plan);
  for (const RoleTime& role : time.roles) {
    SCOPED_TRACE(role.role->name);
    const LinkedProgram program(blocks, *role.role);
    const std::vector<PlannedTime> planned = PlanInstructions(program, role);
    ASSERT_EQ(planned.size(), program.step().end - program.step().first);
    std::vector<double> filled(role.actions.size(), 0);
    double before = 0;
    for (size_t i = 0; i < planned.size(); ++i) {
      const PlannedTime& at = planned[i];
      const OpClass op_class = program.entries()[program.step().first + i].instruction->op_class;
      if (op_class != OpClass::kCompute) {
        ASSERT_EQ(at.length, 0) << i;
      }
      if (at.action < 0) continue;
      const StageAction& action = role.actions[static_cast<size_t>(at.action)];
      filled[static_cast<size_t>(at.action)] += at.length;
      ASSERT_GE(at.start, action.start);
      ASSERT_LE(at.start + at.length, action.end + 1e-9);
      ASSERT_GE(at.start, before - 1e-12);
      before = at.start + at.length;
    }
    for (size_t i = 0; i < filled.size(); ++i)
      EXPECT_NEAR(filled[i], role.actions[i].end - role.actions[i].start, 1e-9) << i;
  }
}

TEST(PlannedStep, HasNoLengthsForAnUnknownDevice) {
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"));
  const StepTime time = TimeStep(plan);
  LinkedBlocks blocks(plan);
  const LinkedProgram program(blocks, *time.roles[0].role);
  for (const PlannedTime& at : PlanInstructions(program, time.roles[0])) EXPECT_EQ(at.length, 0);
}

}  // namespace
}  // namespace planwright
