// outcome.json is read as it was written, by this version and by those before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/base/files/exit_status.h"
#include "planner/wire/records/outcome.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;

Outcome FullOutcome() {
  const ProfileRow attention{"attention", 12, 3.25, 4.5, 0.125, 0.75}, linear{"linear", 24, 2.5, 3, 0.0625, 0.5};
  RoleProfile role{.role = "language.s0", .ranks = {0, 2}, .parts = {{attention, {linear, attention}}, {linear, {}}}};
  role.step = 7.1, role.slowest_step = 9.2, role.instructions = 6.3, role.slowest_instructions = 8.4;
  role.communication = 1.5, role.overlap = 0.6, role.idle = 1.4;
  const RoleMemory memory{"language.s0", 2, {{"parameters", 10, 12}, {"beside", std::nullopt, -1}}, {"in all", 10, 11}};
  return {.exit_code = 11,
          .cause = "rank 3 hung",
          .failure = Failure{.rank = 3,
                             .host = "node7",
                             .instruction = "step 4 > all_reduce x",
                             .last_done = "step 4 > linear x",
                             .recipe_line = "a.yaml:1:2",
                             .message = "two\nlines \"\u00e9\"",
                             .others = {"ranks 0-2 waited in step 4", "rank 4 had ended"},
                             .last_lines = {{"logs/rank0003.log", {"first", "last"}}, {"logs/rank0003.out", {"x"}}}},
          .slow = {{1, "language.s1", 81, 100, 0.412, 0.2}},
          .profile = RunProfile{{3, 5}, {role}},
          .memory = RunMemory{{memory}, ""},
          .interrupted_by = 10};
}

TEST(OutcomeFile, IsReadAsItWasWritten) {
  for (const Outcome& outcome :
       {FullOutcome(), Outcome{0, "done"}, Outcome{10, "x", Failure{.rank = 0}},
        Outcome{.exit_code = 0, .cause = "done", .memory = RunMemory{{}, "not measured on CPUs"}}}) {
    const absl::StatusOr<Outcome> read = ReadOutcome(OutcomeFile(outcome));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, outcome) << OutcomeFile(outcome) << OutcomeFile(*read);
  }
}

// Keys are an interface: they are added, and not renamed.
TEST(OutcomeFile, OfAnEarlierVersionIsRead) {
  const absl::StatusOr<Outcome> read = ReadOutcome(R"({
 "exit_code": 12, "cause": "rank 1 had a gradient that is not finite",
 "profile": {"first_step": 2, "last_step": 3, "roles": [{"role": "m", "ranks": [0], "step_ms": 5,
  "slowest_rank_ms": 5, "instructions_ms": 4, "communication_ms": 1, "overlap_ms": 0, "idle_ms": 1, "parts": [
   {"name": "a", "times": 1, "device_ms": 4, "slowest_rank_ms": 4, "idle_before_ms": 1, "host_ms": 2,
    "instructions": [{"name": "b", "times": 1, "device_ms": 4, "slowest_rank_ms": 4, "idle_before_ms": 1,
                      "host_ms": 2}]}]}]},
 "memory": "not measured on CPUs",
 "slow_ranks": [{"rank": 3, "role": "m", "first_step": 81, "last_step": 100, "step_seconds": 0.4,
                 "median_seconds": 0.2}],
 "rank": 1, "host": "vm", "instruction": "step 3", "last_done": null, "recipe_line": "a.yaml:1:2", "message": null,
 "others": ["rank 0 waited"], "last_lines": [{"file": "logs/rank0001.log", "lines": ["bye"]}]})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->exit_code, 12);
  ASSERT_TRUE(read->profile && read->memory && read->failure);
  EXPECT_EQ(read->profile->roles.at(0).instructions, 4);
  EXPECT_EQ(read->profile->roles[0].slowest_instructions, 0) << "it was not written";
  EXPECT_EQ(read->profile->roles[0].parts.at(0).kinds.at(0).host, 2);
  EXPECT_EQ(read->memory->why_not, "not measured on CPUs");
  EXPECT_EQ(read->slow.at(0).rank, 3);
  EXPECT_EQ(read->failure->rank, 1);
  EXPECT_EQ(read->failure->message, "");
  EXPECT_THAT(read->failure->others, ElementsAre("rank 0 waited"));
  EXPECT_THAT(read->failure->last_lines.at(0).lines, ElementsAre("bye"));
  EXPECT_EQ(read->interrupted_by, 0);
}

TEST(OutcomeFile, FieldsOfAnotherTypeAreNotGiven) {
  const absl::StatusOr<Outcome> read = ReadOutcome(
      R"({"exit_code": -1, "cause": [], "rank": "x", "host": 7, "others": [1, "rank 2", null], "slow_ranks": [7, {}],
          "profile": [], "memory": 3, "last_lines": [4, {"lines": 5}], "interrupted_by": 1e300, "new": {"a": []}})");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->exit_code, kExitUsage) << "no process has such an exit code";
  EXPECT_EQ(read->cause, "");
  EXPECT_FALSE(read->profile || read->memory);
  EXPECT_TRUE(read->slow.empty());
  ASSERT_TRUE(read->failure);
  EXPECT_EQ(read->failure->rank, -1);
  EXPECT_THAT(read->failure->others, ElementsAre("rank 2"));
}

TEST(OutcomeFile, WithoutAnExitCodeIsNone) {
  for (const char* text : {"", "{", "[]", "{}", R"({"exit_code": 1.5})", R"({"exit_code": "0"})"})
    EXPECT_TRUE(absl::IsInvalidArgument(ReadOutcome(text).status())) << text;
}

// A rank's message may hold any bytes.
TEST(OutcomeFile, IsAlwaysJson) {
  const Outcome outcome{10, "x", Failure{.rank = 0, .message = "\xff\x01"}};
  ASSERT_TRUE(ReadOutcome(OutcomeFile(outcome)).ok());
}

}  // namespace
}  // namespace planwright
