#include "planner/estimate/step_time.h"

#include <gtest/gtest.h>

#include "planner/compile.h"
#include "planner/rates/device.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using testing::TinyRecipe;

// A module of `stages` stages, one role each, whose forward takes 1 and backward 2 units, under 1F1B.
Plan Pipeline(int stages, int microbatches) {
  Plan plan;
  Module module;
  module.name = "m";
  module.grid.pp = stages;
  plan.modules = {module};
  const ValueType x = {DType::kFp32, {int64_t{1}, int64_t{1}}, {}, std::nullopt, false};
  const auto product = [&](const std::string& in, const std::string& out) {
    return Instruction{.kind = OpKind::kLinear, .inputs = {in}, .outputs = {{out, x}}};
  };
  Block forward, backward;
  forward.name = "m.forward", forward.module = "m", forward.inputs = {{"x", x}}, forward.body = {product("x", "y")};
  backward.name = "m.backward", backward.module = "m", backward.inputs = {{"x", x}},
  backward.body = {product("x", "y"), product("y", "z")};
  plan.blocks = {forward, backward};
  for (int s = 0; s < stages; ++s) {
    Role role;
    role.name = "m.s" + std::to_string(s);
    role.modules = {"m"};
    role.ranks = {{s, 1, 1}};
    const auto call = [&](bool back, int m) {
      Instruction instruction{.kind = OpKind::kCall};
      instruction.block = back ? "m.backward" : "m.forward";
      instruction.microbatch = m;
      role.step.push_back(std::move(instruction));
    };
    const int warmup = std::min(stages - s - 1, microbatches);
    for (int m = 0; m < warmup; ++m) call(false, m);
    for (int m = warmup; m < microbatches; ++m) call(false, m), call(true, m - warmup);
    for (int m = microbatches - warmup; m < microbatches; ++m) call(true, m);
    plan.roles.push_back(std::move(role));
  }
  return plan;
}

// 1F1B's bubble: stages - 1 forwards and backwards beside those of the microbatches.
TEST(StepTime, OneForwardOneBackwardHasItsBubble) {
  for (const auto& [stages, microbatches] :
       {std::pair(1, 4), std::pair(2, 6), std::pair(4, 8), std::pair(4, 2), std::pair(8, 32)}) {
    const StepTime time = TimeStep(Pipeline(stages, microbatches));
    const double unit = 2;  // FLOPs of a product of one by one
    EXPECT_FALSE(time.seconds);
    EXPECT_DOUBLE_EQ(time.length, 3 * unit * (microbatches + stages - 1));
    EXPECT_NEAR(time.bubble, (stages - 1.0) / (microbatches + stages - 1.0), 1e-12);
    EXPECT_DOUBLE_EQ(time.roles[0].flops, 3 * unit * microbatches);
  }
}

TEST(StepTime, ActionsOfARankDoNotOverlapAndWaitForTheirNeeds) {
  const StepTime time = TimeStep(Pipeline(4, 8));
  for (const RoleTime& role : time.roles) {
    for (size_t i = 1; i < role.actions.size(); ++i) EXPECT_GE(role.actions[i].start, role.actions[i - 1].end);
  }
  EXPECT_GE(time.roles[1].actions[0].start, time.roles[0].actions[0].end);
}

TEST(StepTime, AnEncoderGoesAheadOfItsLanguageModel) {
  const Plan plan = testing::Compiled(TinyRecipe({2, 2, 4, 2, 4, false}));
  const StepTime time = TimeStep(plan);
  for (const RoleTime& role : time.roles) {
    ASSERT_EQ(role.actions.size(), static_cast<size_t>(2 * plan.budget.microbatches)) << role.role->name;
    EXPECT_GT(role.actions.front().end, 0);
  }
  const StageAction& first = time.roles.back().actions.front();
  EXPECT_EQ(first.module, "language");
  EXPECT_GE(first.start, time.roles.front().actions.front().end);
  EXPECT_GT(time.bubble, 0);
  EXPECT_LT(time.bubble, 1);
}

TEST(StepTime, SecondsFollowFromTheDevice) {
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"));
  const StepTime time = TimeStep(plan);
  ASSERT_TRUE(time.seconds);
  const RoleTime& language = time.roles.back();
  EXPECT_NEAR(language.busy, language.flops / (DeviceOf("h200_sxm").bf16 * kEfficiency), 1e-9);
  // 75.78 TFLOP a sequence, shared by two ranks, four microbatches.
  EXPECT_NEAR(language.flops / 1e12, 75.78 / 2 * 4, 0.1);
}

}  // namespace
}  // namespace planwright
