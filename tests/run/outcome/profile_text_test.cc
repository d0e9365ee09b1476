// The table of --trace, as it is printed and kept in outcome.json, of a run that is known to the last number.
#include "planner/run/outcome/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// One role of two ranks: two kinds of instructions in one part.
RunProfile Measured() {
  const ProfileRow experts = {.name = "experts", .times = 4, .device = 6, .slowest_rank = 7, .host = 0.5};
  const ProfileRow exchange = {.name = "all_to_all_v", .times = 8, .device = 3, .slowest_rank = 4, .host = 0.25};
  const ProfileRow whole = {.name = "language.moe", .times = 12, .device = 9, .slowest_rank = 11, .host = 0.75};
  RoleProfile role = {.role = "language.s0", .ranks = {0, 1}, .parts = {{whole, {experts, exchange}}}};
  role.step = 10, role.slowest_step = 11, role.instructions = 9, role.slowest_instructions = 11;
  role.communication = 3, role.waiting = 2, role.idle = 1;
  return {.steps = {3, 4}, .roles = {role}};
}

RunProfile WithPrediction() {
  RunProfile profile = Measured();
  RoleProfile& role = profile.roles[0];
  role.predicted_step = 8, role.predicted_communication = 1.5, role.predicted_waiting = 0.5;
  role.parts[0].whole.predicted = 6.5;
  role.parts[0].kinds[0].predicted = 5, role.parts[0].kinds[1].predicted = 1.5;
  return profile;
}

TEST(ProfileText, HasThePredictionBesideEachRow) {
  EXPECT_THAT(RunProfileText(WithPrediction(), 150), ::testing::StartsWith(R"(
profile of steps 3-4

role language.s0, mean of ranks 0-1; one step in ms
                            times      ms  predicted   off   share  slowest rank  idle before  host ms
language.moe                   12   9.000      6.500  -28%   90.0%        11.000        0.000    0.750
  experts                       4   6.000      5.000  -17%   60.0%         7.000        0.000    0.500
  all_to_all_v                  8   3.000      1.500  -50%   30.0%         4.000        0.000    0.250
all instructions               12   9.000      6.500  -28%   90.0%        11.000        1.000    0.750
of these, communication             3.000      1.500  -50%   30.0%
  until the last rank came          2.000      0.500  -75%   20.0%
device idle                         1.000                    10.0%
step                               10.000      8.000  -20%  100.0%        11.000

furthest from the prediction, in ms of a step
role         part          instruction      ms  predicted  off by
language.s0  language.moe  all_to_all_v  3.000      1.500  -1.500
language.s0  language.moe  experts       6.000      5.000  -1.000
)"));
}

TEST(ProfileText, WithoutAPredictionNothingIsSaidOfIt) {
  EXPECT_THAT(
      RunProfileText(Measured(), 150),
      AllOf(HasSubstr("  experts                       4   6.000   60.0%         7.000"), Not(HasSubstr("predict"))));
}

TEST(ProfileText, IsTheSameFromTheFile) {
  for (const RunProfile& profile : {Measured(), WithPrediction()}) {
    const nlohmann::ordered_json json = RunProfileJson(profile);
    EXPECT_EQ(RunProfileFrom(nlohmann::json::parse(json.dump())), profile);
    EXPECT_EQ(json.contains("furthest_off"), profile.roles[0].predicted_step.has_value());
  }
  EXPECT_EQ(RunProfileJson(WithPrediction())["furthest_off"][0],
            nlohmann::ordered_json({{"role", "language.s0"},
                                    {"part", "language.moe"},
                                    {"instruction", "all_to_all_v"},
                                    {"device_ms", 3.0},
                                    {"predicted_ms", 1.5}}));
}

}  // namespace
}  // namespace planwright
