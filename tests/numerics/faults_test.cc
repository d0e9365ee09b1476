// The comparison of curves would notice a fault: each deliberate one moves a loss, a norm or a gradient far beyond the
// tolerance of layouts_test.cc, or stops the run.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

constexpr char kTiny[] = "recipes/nemotron_moe_vlm_tiny.yaml";
constexpr double kFp64 = 1e-9;
constexpr int kSteps = 2;

TrainingRun RunWithFault(const char* fault, const std::vector<std::string>& layout) {
  setenv("PLANWRIGHT_FAULT", fault, 1);
  return Launch({kTiny, Join({"precision.params=fp64"}, layout), kSteps, "faulty_executor"});
}

const TrainingRun& Healthy() {
  static const TrainingRun run = Launch({kTiny, {"precision.params=fp64"}, kSteps, ""});
  return run;
}

const std::vector<std::string> kTp2 = Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1));
const std::vector<std::string> kDp2 = Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 2));

void ExpectNoticed(const char* fault, const std::vector<std::string>& layout) {
  ASSERT_EQ(Healthy().exit_code, 0) << Healthy().output;
  const TrainingRun run = RunWithFault(fault, layout);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const Comparison comparison = Compare(run, Healthy(), kFp64);
  if (comparison.parted_at) return;  // other experts chosen: in fp64 no layout does that (layouts_test.cc)
  EXPECT_FALSE(comparison.differences.empty());
  EXPECT_GT(std::max({comparison.worst_loss, comparison.worst_norm, comparison.worst_gradient_first}), 1000 * kFp64);
}

TEST(Faults, NoFaultNoDifference) {
  const TrainingRun run = RunWithFault("", kTp2);
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const Comparison comparison = Compare(run, Healthy(), kFp64);
  EXPECT_TRUE(comparison.differences.empty());
  EXPECT_FALSE(comparison.parted_at);
}
TEST(Faults, RowsOfAnotherImageAreNoticed) { ExpectNoticed("shifted_bridge_rows", kDp2); }
TEST(Faults, ADoubledGradientIsNoticed) { ExpectNoticed("doubled_gradient", kTp2); }
TEST(Faults, AMissingSumOverTpIsNoticed) { ExpectNoticed("missing_tp_sum", kTp2); }
TEST(Faults, MisplacedExpertRowsAreNoticed) { ExpectNoticed("misplaced_expert_rows", kDp2); }
TEST(Faults, SwappedBridgeLanesAreNoticed) {
  const TrainingRun run = RunWithFault("swapped_bridge_lanes", kDp2);
  const bool stopped = run.exit_code != 0;
  if (stopped) return;
  const Comparison comparison = Compare(run, Healthy(), kFp64);
  EXPECT_TRUE(comparison.parted_at || !comparison.differences.empty());
}

}  // namespace
}  // namespace planwright::testing
