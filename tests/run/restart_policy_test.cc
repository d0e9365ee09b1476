#include "planner/run/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/base/files/exit_status.h"

namespace planwright {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Optional;

Outcome Failed(int exit_code) { return {exit_code, "rank 1 failed", Failure{1, "here"}}; }

TEST(RestartPolicy, PausesLongerAfterEachLifeInVain) {
  RestartPolicy policy(100);
  std::string why;
  for (const int expected : {1, 4, 16, 64})
    EXPECT_THAT(policy.Next(Failed(kExitPeerLost), 0, why), Optional(seconds(expected)));
  EXPECT_EQ(policy.Next(Failed(kExitPeerLost), 0, why), std::nullopt);
  EXPECT_THAT(why, HasSubstr("5 lives in a row wrote no checkpoint"));
}

TEST(RestartPolicy, ANewCheckpointIsProgress) {
  RestartPolicy policy(100);
  std::string why;
  for (int64_t step = 10; step < 100; step += 10)
    EXPECT_THAT(policy.Next(Failed(kExitHang), step, why), Optional(seconds(1)));
  EXPECT_THAT(policy.Next(Failed(kExitHang), 90, why), Optional(seconds(4)));
}

TEST(RestartPolicy, StopsAtTheLimit) {
  RestartPolicy policy(2);
  std::string why;
  EXPECT_TRUE(policy.Next(Failed(kExitDevice), 1, why) && policy.Next(Failed(kExitDevice), 2, why));
  EXPECT_EQ(policy.Next(Failed(kExitDevice), 3, why), std::nullopt);
  EXPECT_THAT(why, HasSubstr("launch.restarts allows 2"));
}

TEST(RestartPolicy, WhatWouldFailAgainIsNotRetried) {
  std::string why;
  for (const int code : {kExitInvalid, kExitUsage, kExitNumerics, kExitPlanMismatch, kExitInternal}) {
    RestartPolicy policy(3);
    EXPECT_EQ(policy.Next(Failed(code), 5, why), std::nullopt) << code;
    EXPECT_EQ(why, "");
  }
}

TEST(RestartPolicy, DoneAndInterruptedRunsStayAsTheyAre) {
  RestartPolicy policy(3);
  std::string why;
  EXPECT_EQ(policy.Next({kExitSuccess, "done"}, 5, why), std::nullopt);
  EXPECT_EQ(policy.Next({kExitPreempted, "preempted"}, 5, why), std::nullopt);
  EXPECT_EQ(policy.Next({143, "interrupted by SIGTERM"}, 5, why), std::nullopt);
}

TEST(RestartPolicy, ARunThatFailedWhileItWasAskedToEndIsNotStartedAgain) {
  RestartPolicy policy(3);
  std::string why;
  Outcome outcome = Failed(kExitPeerLost);
  outcome.interrupted_by = 15;
  EXPECT_EQ(policy.Next(outcome, 5, why), std::nullopt);
  EXPECT_THAT(why, HasSubstr("interrupted by signal 15"));
}

TEST(RestartPolicy, NoneIsAllowedUnlessTheRecipeSaysSo) {
  RestartPolicy policy(0);
  std::string why;
  EXPECT_EQ(policy.Next(Failed(kExitPeerLost), 5, why), std::nullopt);
  EXPECT_EQ(why, "");
}

}  // namespace
}  // namespace planwright
