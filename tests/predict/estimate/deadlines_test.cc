#include "planner/predict/estimate/deadlines.h"

#include <gtest/gtest.h>

#include "planner/plan/plan_json.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

Plan TinyPlan(std::vector<std::string> overrides) {
  overrides.push_back("modules.language.placement.first_rank=1");
  overrides.push_back("cluster.gpus_per_node=2");
  return testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"), overrides);
}

TEST(DeadlineRule, TakesTheLargerOfFloorAndEstimate) {
  const DeadlineRule rule{.floor = 600, .first_step = 1800, .factor = 20, .step = 50};
  EXPECT_EQ(rule.Of(0), (Deadline{600, 1800}));
  EXPECT_EQ(rule.Of(29), (Deadline{600, 1800}));
  EXPECT_EQ(rule.Of(50), (Deadline{1000, 1800}));
  EXPECT_EQ(rule.Of(100), (Deadline{2000, 2000}));
  EXPECT_EQ(rule.OfWaiting(), rule.Of(50));
  EXPECT_EQ(rule.OfScore(), rule.OfWaiting()) << "nothing is evaluated";
  DeadlineRule evaluates = rule;
  evaluates.rounds = 3;
  EXPECT_EQ(evaluates.OfScore(), (Deadline{3 * rule.OfWaiting().later, 3 * rule.OfWaiting().first}));
}

TEST(DeadlineRule, AShorterFirstStepDoesNotShorten) {
  EXPECT_EQ((DeadlineRule{.floor = 600, .first_step = 60, .factor = 20}).Of(0), (Deadline{600, 600}));
}

TEST(DeadlineRule, OfAPlanIsThatOfItsRecipe) {
  const DeadlineRule rule = DeadlineRuleOf(
      TinyPlan({"launch.deadline.floor=30", "launch.deadline.first_step=90", "launch.deadline.factor=3"}));
  EXPECT_EQ(rule.floor, 30);
  EXPECT_EQ(rule.first_step, 90);
  EXPECT_EQ(rule.factor, 3);
  EXPECT_EQ(rule.step, 0) << "nothing is known of CPUs";
}

// The planner predicts the step once, with the recipe's device and profile. Ranks and launches take its figure.
TEST(DeadlineRule, TakesTheStepThatThePlanSays) {
  Plan plan = TinyPlan({"cluster.gpu=h200_sxm"});
  EXPECT_EQ(plan.launch.predicted_step, TimeStep(plan).length);
  EXPECT_GT(plan.launch.predicted_step, 0);
  const std::string digest = PlanDigest(plan);
  const double predicted = plan.launch.predicted_step;
  plan.launch.predicted_step = 77;
  EXPECT_EQ(DeadlineRuleOf(plan).step, 77);
  EXPECT_EQ(PlanDigest(plan), digest) << "it changes no run's numbers";
  EXPECT_EQ(ReadPlan(WritePlan(plan))->launch.predicted_step, 77);
  plan.launch.predicted_step = 0;  // of an earlier version
  EXPECT_EQ(WritePlan(plan).find("predicted_step"), std::string::npos);
  EXPECT_EQ(DeadlineRuleOf(plan).step, predicted);
  EXPECT_EQ(TinyPlan({}).launch.predicted_step, 0) << "nothing is known of CPUs";
}

// With almost no floor estimates count: what waits may take as long as a step, what works by itself its share of one.
TEST(Deadlines, FollowWhatAnInstructionDoes) {
  Plan plan = TinyPlan({"cluster.gpu=h200_sxm"});
  plan.launch.deadline_floor = plan.launch.deadline_first_step = 1e-9, plan.launch.deadline_factor = 1000;
  const DeadlineRule rule = DeadlineRuleOf(plan);
  ASSERT_GT(rule.step, 0);
  EXPECT_EQ(rule.step, TimeStep(plan).length);
  for (const Role& role : plan.roles) {
    LinkedBlocks blocks(plan);
    const LinkedProgram program(blocks, role);
    const Deadlines deadlines(program, rule);
    int waiting = 0, longer = 0;
    for (const LinkedEntry& entry : program.entries()) {
      const LinkedInstruction& instruction = *entry.instruction;
      const double later = deadlines.of(instruction).later;
      EXPECT_LE(later, rule.OfWaiting().later);
      if (instruction.op_class == OpClass::kCommunication) {
        EXPECT_EQ(later, 1000 * rule.step);
        ++waiting;
      }
      if (instruction.source->kind == OpKind::kLinear) {
        EXPECT_GT(later, rule.floor);
        ++longer;
      }
      if (instruction.op_class == OpClass::kStorage || instruction.op_class == OpClass::kData) {
        EXPECT_EQ(later, rule.floor);
      }
    }
    EXPECT_GT(longer, 0) << role.name;
    EXPECT_GT(waiting, 0) << role.name;
  }
}

// Two that are done as one run at the place of the second, which has no time of its own.
TEST(Deadlines, OfTwoAsOneAreAlike) {
  Plan plan = TinyPlan({"cluster.gpu=h200_sxm", "precision.params=bf16"});
  plan.launch.deadline_floor = plan.launch.deadline_first_step = 1e-9, plan.launch.deadline_factor = 1000;
  int pairs = 0;
  for (const Role& role : plan.roles) {
    LinkedBlocks blocks(plan);
    const LinkedProgram program(blocks, role);
    const Deadlines deadlines(program, DeadlineRuleOf(plan));
    for (size_t i = 0; i < program.entries().size(); ++i) {
      const LinkedInstruction& first = *program.entries()[i].instruction;
      if (!first.joins_next) continue;
      EXPECT_GT(deadlines.of(first).later, 1e-9);
      EXPECT_EQ(deadlines.of(*program.entries()[i + 1].instruction), deadlines.of(first));
      ++pairs;
    }
  }
  EXPECT_GT(pairs, 0);
}

}  // namespace
}  // namespace planwright
