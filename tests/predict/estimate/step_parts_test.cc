// What is predicted beside the step: copies of checkpoints, and the rows of a trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/plan/link/linked_program.h"
#include "planner/predict/estimate/step_speed.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/predict/estimate/made_up_rates.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using testing::CompiledFile;
using testing::OnlyKinds;

const std::string kTinyModel = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

// AdamW comes at the end of a step here, and takes no time. Copies that take longer than a step make the next one
// longer.
TEST(StepParts, CopiesOfACheckpointMayMakeTheNextStepWait) {
  const Plan plan = CompiledFile(kTinyModel, {"checkpoint.every_steps=5"});
  int64_t bytes = 0;
  for (const Module& module : plan.modules) {
    for (const Bucket& bucket : module.buckets) bytes += 4 * bucket.elements * 3;  // fp32: weight and two moments
  }
  RateTable table = OnlyKinds({OpKind::kMambaScan, OpKind::kMambaScanGrad}, 1);
  const double step = TimeStep(plan, Rates(table)).length;
  const auto with_copies_of = [&](double seconds) {
    table.device.host_link = static_cast<double>(bytes) / seconds, table.host_link = 1;
    return TimeStep(plan, Rates(table));
  };
  const StepTime slow = with_copies_of(1.5 * step), fast = with_copies_of(0.9 * step);
  EXPECT_EQ(slow.length, step) << "of a step without";
  EXPECT_TRUE(slow.save.known);
  EXPECT_EQ(slow.save.every, 5);
  // Buffers are copied too.
  EXPECT_NEAR(static_cast<double>(slow.save.bytes) / static_cast<double>(bytes), 1, 0.01);
  EXPECT_NEAR(slow.save.copy / step, 1.5, 0.02);
  EXPECT_NEAR(slow.save.longer, slow.save.copy - step, 1e-9 * step);
  EXPECT_DOUBLE_EQ(slow.save.per_step(), slow.save.longer / 5);
  EXPECT_EQ(fast.save.longer, 0);
  // Three of four checkpoints have a step beside them, the last one has none.
  ASSERT_EQ(plan.budget.steps, 20);
  EXPECT_NEAR(3600 * SpeedOf(plan, slow).hours, 20 * step + 3 * slow.save.longer + slow.save.copy, 1e-6 * step);
  EXPECT_NEAR(3600 * SpeedOf(plan, fast).hours, 20 * step + fast.save.copy, 1e-6 * step);
  Plan limited = plan;
  limited.checkpoint.copy_bytes = bytes / 2;
  EXPECT_FALSE(TimeStep(limited, Rates(table)).save.known) << "copies wait for the disk";
  EXPECT_EQ(TimeStep(CompiledFile(kTinyModel), Rates(table)).save.every, 0);
}

// CPUs read and write all gradients once to scale them. GPUs scale what they read of them later.
TEST(StepParts, OnlyCpusScaleGradientsInMemory) {
  RateTable table = OnlyKinds({}, 1);
  table.device.memory_speed = table.memory = 1;
  table.kinds[static_cast<size_t>(OpKind::kScaleGradients)].passes = 1;
  const auto length = [&](const char* gpu) {
    return TimeStep(CompiledFile(kTinyModel, {absl::StrCat("cluster.gpu=", gpu)}), Rates(table)).length;
  };
  int64_t bytes = 0;
  const Plan plan = CompiledFile(kTinyModel);
  for (const Module& module : plan.modules) {
    for (const Bucket& bucket : module.buckets) bytes += 2 * 4 * bucket.elements;  // fp32
  }
  EXPECT_NEAR(length("none") / static_cast<double>(bytes), 1, 1e-9);
  EXPECT_EQ(length("h200_sxm"), 0);
}

// Rows of a trace: all instructions, and with waiting all of the step where nothing overlaps.
TEST(StepParts, OperationsAreTheRowsOfATrace) {
  const Plan plan = CompiledFile(
      kTinyModel, {"modules.language.placement.first_rank=1", "cluster.gpus_per_node=2", "cluster.gpu=h200_sxm"});
  const StepTime time = TimeStep(plan);
  for (const RoleTime& role : time.roles) {
    LinkedBlocks blocks(plan);
    const LinkedProgram program(blocks, *role.role);
    double times = 0, seconds = 0, communication = 0, expected = 0, communicated = 0;
    for (const OperationTime& operation : role.operations) {
      times += operation.times, seconds += operation.seconds;
      communication += operation.communication ? operation.seconds : 0;
      EXPECT_FALSE(operation.part.empty());
    }
    for (size_t i = 0; i < role.entries.size(); ++i) {
      const double all = role.entries[i].length + role.entries[i].waited;
      const bool communicates =
          program.entries()[program.step().first + i].instruction->op_class == OpClass::kCommunication;
      expected += all, communicated += communicates ? all : 0;
    }
    EXPECT_EQ(times, static_cast<double>(role.entries.size()));
    EXPECT_NEAR(seconds, expected, 1e-9);
    EXPECT_NEAR(communication, communicated, 1e-9);
    EXPECT_GT(communication, 0);
  }
}

}  // namespace
}  // namespace planwright
