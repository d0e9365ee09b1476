// One rank throws, is killed, is stopped, works for ever, or leaves out a collective: the run ends by itself, nobody is left behind, and
// outcome.json names rank and instruction. On CPU ranks over Gloo; tests/gpu has the same on GPUs.
#include <gtest/gtest.h>

#include "tests/end_to_end/faulty_run.h"

namespace planwright::testing {
namespace {

using Case = std::tuple<std::string, int>;

class FaultyRank : public ::testing::TestWithParam<Case> {};

TEST_P(FaultyRank, EndsTheRunAndIsNamed) {
  // The time-out is how long healthy ranks may wait for each other; the patience only keeps a run that hangs from hanging the test.
  const FaultyRun run{.binaries = PLANWRIGHT_BINARY_DIR "/bin",
                      .recipe = PLANWRIGHT_SOURCE_DIR "/recipes/nemotron_moe_vlm_tiny.yaml",
                      .device = "cpu",
                      .fault = std::get<0>(GetParam()),
                      .fault_rank = std::get<1>(GetParam()),
                      .timeout_seconds = 10,
                      .patience_seconds = 120};
  const Aftermath after = RunWithFault(run);
  EXPECT_EQ(Misjudged(run, after), "") << after.outcome << "\n" << after.output;
}

INSTANTIATE_TEST_SUITE_P(Any, FaultyRank,
                         ::testing::Combine(::testing::Values("throw", "kill", "stop", "endless", "skip"), ::testing::Values(0, 1)),
                         [](const auto& info) { return std::get<0>(info.param) + "_on_rank_" + std::to_string(std::get<1>(info.param)); });

}  // namespace
}  // namespace planwright::testing
