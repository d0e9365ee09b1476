// The table of exit statuses, and the page made from it. UPDATE_GOLDENS=1 writes the page.
#include "planner/base/files/exit_status.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/folders.h"

namespace planwright {
namespace {

TEST(ExitStatuses, HaveAscendingNumbersAndAllTheirWords) {
  int before = -1;
  for (const ExitStatusRow& row : ExitStatuses()) {
    EXPECT_GT(row.number, before);
    EXPECT_LT(row.number, 126) << "a shell uses these itself";
    before = row.number;
    EXPECT_STRNE(row.meaning, "") << row.number;
    EXPECT_LE(std::string(row.meaning).size(), 70u) << row.meaning;
    if (row.number == kExitSuccess) continue;
    EXPECT_STRNE(row.named, "") << row.number;
    EXPECT_STRNE(row.mend, "") << row.number;
    EXPECT_FALSE(row.follows && !row.restart) << row.number << ": what broke the other rank may be worth a restart";
  }
}

TEST(ExitStatuses, KeepTheirNumbers) {
  const int numbers[] = {kExitSuccess,   kExitInvalid,  kExitUsage,        kExitPeerLost,     kExitHang,
                         kExitNumerics,  kExitDamaged,  kExitPlanMismatch, kExitStorage,      kExitDevice,
                         kExitCapacity,  kExitReplaced, kExitHostMemory,   kExitDeviceMemory, kExitNetwork,
                         kExitStoreLost, kExitNodeLost, kExitStopped,      kExitDiverged,     kExitTrial,
                         kExitInternal,  kExitPreempted};
  const int expected[] = {0, 1, 2, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 70, 75};
  ASSERT_EQ(std::size(numbers), std::size(expected));
  ASSERT_EQ(std::size(expected), ExitStatuses().size());
  for (size_t i = 0; i < std::size(expected); ++i) EXPECT_EQ(numbers[i], expected[i]);
}

TEST(WorthRetrying, WhatTheMachineDidAndNotWhatTheRunWouldDoAgain) {
  for (const int status : {10, 11, 15, 16, 21, 22, 23, 24}) EXPECT_TRUE(WorthRetrying(status)) << status;
  for (const int status : {0, 1, 2, 12, 13, 14, 17, 18, 19, 20, 25, 70, 75})
    EXPECT_FALSE(WorthRetrying(status)) << status;
}

TEST(WorthRetrying, StatusesOfOthers) {
  EXPECT_TRUE(WorthRetrying(3)) << "a library that calls exit";
  EXPECT_FALSE(WorthRetrying(127)) << "a program that could not be started";
  EXPECT_FALSE(WorthRetrying(128 + SIGTERM)) << "an interrupt";
}

TEST(ExitStatuses, ThePageIsInStepWithTheTable) {
  const std::string path = InSource("docs/failures.md");
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(path, std::ios::binary) << FailuresPage();
  std::ifstream in(path, std::ios::binary);
  const std::string written(std::istreambuf_iterator<char>(in), {});
  EXPECT_TRUE(written == FailuresPage())
      << "docs/failures.md is out of step: write it again with `plan explain --failures > docs/failures.md`";
}

}  // namespace
}  // namespace planwright
