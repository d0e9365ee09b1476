// The command line of the executor: what it takes, and what it refuses with the usage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "executor/rank/assignment.h"

namespace planwright::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<RankOptions> Read(std::vector<const char*> words) {
  words.insert(words.begin(), "executor");
  return ReadOptions(static_cast<int>(words.size()), words.data());
}

TEST(Options, AllAreRead) {
  const absl::StatusOr<RankOptions> options =
      Read({"--plan",        "p.json", "--run-dir", "run", "--life",           "3",       "--probe",  "probe",
            "--steps",       "12",     "--trace",   "4-6", "--record-routing", "choices", "--rounds", "r.json",
            "--accept-data", "12ab",   "--device",  "cpu"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->plan, "p.json");
  EXPECT_EQ(options->run_dir, "run");
  EXPECT_EQ(options->life, 3);
  EXPECT_EQ(options->probe, "probe");
  EXPECT_EQ(options->steps, 12);
  ASSERT_TRUE(options->profile);
  EXPECT_EQ(options->profile->first, 4);
  EXPECT_EQ(options->profile->last, 6);
  EXPECT_EQ(options->record_routing, "choices");
  EXPECT_EQ(options->replay_routing, "");
  EXPECT_EQ(options->rounds, "r.json");
  EXPECT_EQ(options->accepted_data, "12ab");
  EXPECT_EQ(options->device, "cpu");
}

TEST(Options, MostMayBeLeftOut) {
  const absl::StatusOr<RankOptions> options = Read({"--plan", "p.json", "--run-dir", "run"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->life, 1);
  EXPECT_FALSE(options->steps);
  EXPECT_FALSE(options->profile);
  EXPECT_EQ(options->device, "");
}

TEST(Options, WhatCannotBeReadIsNamedWithTheUsage) {
  const std::vector<std::pair<std::vector<const char*>, const char*>> cases = {
      {{}, "--plan and --run-dir are required"},
      {{"--plan", "p.json"}, "--plan and --run-dir are required"},
      {{"--plan", "p.json", "--run-dir"}, "--run-dir needs a value"},
      {{"--plan", ""}, "unknown option or value: --plan "},
      {{"--plans", "p.json"}, "unknown option or value: --plans p.json"},
      {{"--device", "gpu"}, "unknown option or value: --device gpu"},
      {{"--steps", "-1"}, "unknown option or value: --steps -1"},
      {{"--steps", "12abc"}, "unknown option or value: --steps 12abc"},
      {{"--steps", "99999999999999999999"}, "unknown option or value: --steps 99999999999999999999"},
      {{"--life", "1.5"}, "unknown option or value: --life 1.5"},
      {{"--life", "4294967297"}, "unknown option or value: --life 4294967297"},
      {{"--trace", "7-5"}, "unknown option or value: --trace 7-5"},
      {{"--plan", "p", "--run-dir", "r", "--record-routing", "a", "--replay-routing", "b"},
       "--record-routing and --replay-routing exclude each other"},
  };
  for (const auto& [words, problem] : cases) {
    const absl::Status status = Read(words).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << problem;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(problem), HasSubstr("\nusage: executor --plan FILE")));
  }
}

}  // namespace
}  // namespace planwright::executor
