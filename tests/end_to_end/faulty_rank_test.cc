// One rank throws, is killed, is stopped, runs for ever, or leaves out a collective: the run ends by itself, no process
// is left, and outcome.json names rank and instruction. On CPU ranks over Gloo; tests/gpu has the same on GPUs.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/end_to_end/faulty_run.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using Case = std::tuple<std::string, int>;

// How long healthy ranks may wait for each other. Much longer than a whole short run takes here, as others run at the
// same time, and the machine may get busier.
int TimeoutSeconds() {
  static const int seconds = [] {
    std::string folder = (std::filesystem::temp_directory_path() / "planwright_healthy_XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    const auto start = std::chrono::steady_clock::now();
    const Started launch = StartProgram(
        {InBuild("bin/plan"), "launch", InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
         "modules.language.placement.first_rank=1", "--local", "--yes", "--steps", "2", "--run-dir", folder + "/run"},
        {}, folder + "/output");
    EXPECT_EQ(WaitFor(launch.pid, kPatience), 0) << ReadAll(launch.output);
    const auto took = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    std::filesystem::remove_all(folder);
    return std::max(30, 3 * static_cast<int>(took.count()));
  }();
  return seconds;
}

class FaultyRank : public ::testing::TestWithParam<Case> {};

TEST_P(FaultyRank, EndsTheRunAndIsNamed) {
  const FaultyRun run{.binaries = InBuild("bin"),
                      .recipe = InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                      .device = "cpu",
                      .fault = std::get<0>(GetParam()),
                      .fault_rank = std::get<1>(GetParam()),
                      .timeout_seconds = TimeoutSeconds(),
                      .patience_seconds = std::chrono::seconds(kPatience).count()};
  const Aftermath after = RunWithFault(run);
  EXPECT_EQ(WhatIsWrong(run, after), "") << after.outcome << "\n" << after.output;
}

INSTANTIATE_TEST_SUITE_P(Any, FaultyRank,
                         ::testing::Combine(::testing::Values("throw", "kill", "stop", "endless", "skip"),
                                            ::testing::Values(0, 1)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_on_rank_" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace planwright::testing
