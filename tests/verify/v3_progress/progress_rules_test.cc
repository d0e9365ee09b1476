// V3 on plans that are small enough to work out by hand: what it refuses and what its messages say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"
#include "tests/verify/v3_progress/simulator.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Simulate;

// One module with tp = `ranks`. Each rank has its own role, whose recipe line is 10 + rank.
Plan Ranks(int ranks) {
  Plan plan;
  plan.world_size = ranks;
  Module& module = plan.modules.emplace_back();
  module.name = "m";
  module.grid.tp = module.grid.ep = ranks;
  plan.groups.push_back({.name = "world", .short_name = "world", .streams = {""}});
  plan.groups.push_back(
      {.name = "m.tp", .short_name = "tp", .module = "m", .view = View::kDense, .axes = {Axis::kTp}, .streams = {""}});
  for (int rank = 0; rank < ranks; ++rank) {
    plan.origins.push_back({"recipe.yaml", 10 + rank, 1, "module m"});
    plan.roles.push_back({.name = absl::StrCat("r", rank), .modules = {"m"}, .ranks = {{rank, 1, 1}}, .origin = rank});
  }
  return plan;
}

// An all_reduce of fp32[size].
Instruction Reduce(const std::string& group, int64_t size = 4) {
  Instruction reduce{.kind = OpKind::kAllReduce};
  reduce.outputs = {{"y", {DType::kFp32, {size}, {}, std::nullopt, false}}};
  reduce.group = group;
  return reduce;
}

Instruction Transfers(std::vector<ExchangePart> parts) {
  return {.kind = OpKind::kExchange, .parts = std::move(parts)};
}

// The message of V3; "" if the plan passes.
std::string Problem(const Plan& plan) {
  const std::vector<Violation> violations = VerifyProgress(plan);
  if (violations.empty()) return "";
  EXPECT_EQ(violations.size(), 1);  // only the first wrong position, and not what follows from it
  EXPECT_EQ(violations.front().rule, "V3");
  return violations.front().message;
}

// Whether all simulated interleavings reach the end.
bool Completes(const Plan& plan) {
  std::vector<testing::Interleaving> interleavings;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (int host_waits : {0, 50, 100}) interleavings.push_back({seed, host_waits});
  }
  return Simulate(plan, interleavings).completed;
}

TEST(ProgressRules, NamesBothSidesOfAMismatch) {
  Plan plan = Ranks(2);
  plan.roles[0].step = {Reduce("world"), Reduce("m.tp", 4)};
  plan.roles[1].step = {Reduce("world"), Reduce("m.tp", 5)};
  EXPECT_EQ(Problem(plan),
            "rank 0 (role r0) at step 1: all_reduce fp32[4] over m.tp (recipe.yaml:10) meets "
            "rank 1 (role r1) at step 1: all_reduce fp32[5] over m.tp (recipe.yaml:11)");
  EXPECT_EQ(VerifyProgress(plan).front().origin, 0);
}

TEST(ProgressRules, NamesTheBlockAndTheInstruction) {
  Plan plan = Ranks(2);
  for (const char* name : {"outer", "inner"}) plan.blocks.push_back({.name = name});
  Instruction call{.kind = OpKind::kCall}, inner{.kind = OpKind::kCall};
  call.block = "outer", inner.block = "inner";
  plan.blocks[0].body = {Reduce("world"), inner};
  plan.blocks[1].body = {Reduce("world"), Reduce("m.tp")};
  plan.roles[0].step = {call, call};
  plan.roles[1].step = {call, Reduce("world"), Reduce("world"), Reduce("m.tp", 3)};
  EXPECT_THAT(
      Problem(plan),
      AllOf(HasSubstr("rank 0 (role r0) at step 1 > outer 1 > inner 1: all_reduce fp32[4] over m.tp (recipe.yaml:10)"),
            HasSubstr("rank 1 (role r1) at step 3: all_reduce fp32[3] over m.tp (recipe.yaml:11)")));
}

TEST(ProgressRules, CountsACollectiveThatOneSideLacks) {
  Plan plan = Ranks(2);
  plan.roles[0].step = {Reduce("world"), Reduce("world")};
  plan.roles[1].step = {Reduce("world")};
  EXPECT_EQ(
      Problem(plan),
      "rank 0 (role r0) at step 1: all_reduce fp32[4] over world (recipe.yaml:10) is its 2nd collective over world; "
      "rank 1 (role r1) (recipe.yaml:11) has only 1");
}

TEST(ProgressRules, CountsTransfersThatOneSideLacks) {
  Plan plan = Ranks(2);
  plan.modules[0].grid = {.pp = 2};
  plan.groups.push_back(
      {.name = "m.pp", .short_name = "pp", .module = "m", .view = View::kDense, .axes = {Axis::kPp}, .streams = {""}});
  const ExchangePart send{.send = true, .value = "x", .group = "m.pp", .shift = 1},
      receive{.value = "x", .group = "m.pp", .shift = -1};
  plan.roles[0].step = {Transfers({send}), Transfers({send})};
  plan.roles[1].step = {Transfers({receive})};
  EXPECT_THAT(
      Problem(plan),
      HasSubstr(
          "rank 0 (role r0) at step 1: exchange (send forward by 1 over m.pp) (recipe.yaml:10) sends 2 times where "
          "rank 1 (role r1) (recipe.yaml:11) receives once"));
  plan.roles[1].step.push_back(Transfers({receive}));
  EXPECT_EQ(Problem(plan), "");
  plan.roles[1].step.push_back(Transfers({send}));
  EXPECT_THAT(Problem(plan), HasSubstr("has nobody at the other end of its send forward by 1 over m.pp"));
}

// docs/progress.md#what-follows-for-communicators
TEST(ProgressRules, TwoCommunicatorsInTwoOrdersAreACircle) {
  Plan plan = Ranks(2);
  plan.roles[0].step = {Reduce("world"), Reduce("m.tp")};
  plan.roles[1].step = {Reduce("m.tp"), Reduce("world")};
  EXPECT_THAT(Problem(plan), AllOf(HasSubstr("rank 0 (role r0) at step 0"),
                                   HasSubstr("waits in a circle: for rank 1 (role r1) at step 0"),
                                   HasSubstr("which waits for the first")));
  // On two streams the ranks get through if the device has room for both collectives at once. A plan may not rely on
  // that, so V3 refuses it too.
  for (Role& role : plan.roles) {
    for (Instruction& reduce : role.step) reduce.stream = reduce.group == "m.tp" ? "other" : "";
  }
  plan.groups[1].streams = {"other"};
  EXPECT_THAT(Problem(plan), HasSubstr("waits in a circle"));
  EXPECT_TRUE(Simulate(plan, {{1, 0}}).completed);
  EXPECT_FALSE(Simulate(plan, {{1, 100}}).completed);
}

TEST(ProgressRules, ThreeCommunicatorsOfTwoRanksCanFormACircle) {
  Plan plan = Ranks(3);
  for (const auto& [name, ranks] :
       std::map<std::string, std::vector<int>>{{"g01", {0, 1}}, {"g12", {1, 2}}, {"g02", {0, 2}}}) {
    plan.groups.push_back({.name = name, .short_name = name, .ranks = ranks, .streams = {""}});
  }
  plan.roles[0].step = {Reduce("g01"), Reduce("g02")};
  plan.roles[1].step = {Reduce("g12"), Reduce("g01")};
  plan.roles[2].step = {Reduce("g02"), Reduce("g12")};
  EXPECT_THAT(Problem(plan), AllOf(HasSubstr("(role r0)"), HasSubstr("(role r1)"), HasSubstr("(role r2)"),
                                   HasSubstr("waits in a circle")));
  EXPECT_FALSE(Completes(plan));
  std::swap(plan.roles[2].step[0], plan.roles[2].step[1]);
  EXPECT_EQ(Problem(plan), "");
  EXPECT_TRUE(Completes(plan));
}

TEST(ProgressRules, BothEndsNameOneStreamThatHasACommunicator) {
  Plan plan = Ranks(2);
  plan.roles[0].step = plan.roles[1].step = {Reduce("world")};
  for (Role& role : plan.roles) role.step[0].stream = "beside";
  EXPECT_THAT(Problem(plan), HasSubstr("is on stream beside, for which its group has no communicator"));
  EXPECT_FALSE(Completes(plan));
  plan.groups[0].streams = {"", "beside"};
  EXPECT_EQ(Problem(plan), "");
  EXPECT_TRUE(Completes(plan));
  plan.roles[0].step[0].stream = "";
  EXPECT_THAT(Problem(plan), HasSubstr("meets"));
  EXPECT_FALSE(Completes(plan));
}

TEST(ProgressRules, ARankOutsideTheGroupIsNamed) {
  Plan plan = Ranks(2);
  plan.groups.push_back({.name = "one", .short_name = "one", .ranks = {0}, .streams = {""}});
  plan.roles[0].step = plan.roles[1].step = {Reduce("one")};
  EXPECT_THAT(Problem(plan), HasSubstr("rank 1 (role r1) at step 0: all_reduce fp32[4] over one (recipe.yaml:11) is "
                                       "called by ranks that are not all members"));
}

TEST(ProgressRules, ProgramsThatUnrollTooFarAreRefused) {
  Plan plan = Ranks(1);
  for (int i = 0; i < 60; ++i) {
    Block& block = plan.blocks.emplace_back();
    block.name = absl::StrCat("b", i);
    Instruction call{.kind = OpKind::kCall};
    call.block = absl::StrCat("b", i + 1);
    block.body = {call, call};
  }
  plan.blocks.back().body = {Reduce("world")};
  plan.roles[0].step = plan.blocks.front().body;
  EXPECT_EQ(Problem(plan), "the programs unroll to more than 16777216 communications");
}

// A conservative case of docs/progress.md. Rank 0 sends in the first exchange, and rank 1 receives in the second. The
// ranks get through, but V3 runs their role as one and refuses it.
TEST(ProgressRules, RanksOfARoleThatTakeTurnsAreRefusedUntilTheRoleIsSplit) {
  Plan plan = Ranks(2);
  plan.bridges.push_back({.name = "b", .from = "m", .to = "m", .kind = "colocated", .forward = {{0, 1, 0, 1}}});
  plan.groups.push_back({.name = "b", .short_name = "bridge", .ranks = {0, 1}, .streams = {""}});
  const std::vector<Instruction> turns = {Transfers({{.bridge = "b", .send = true, .value = "x"}}),
                                          Transfers({{.bridge = "b", .value = "x"}})};
  plan.roles[0].step = plan.roles[1].step = turns;
  EXPECT_EQ(Problem(plan), "");
  plan.roles.pop_back();
  plan.roles[0].ranks = {{0, 2, 1}};
  EXPECT_TRUE(Completes(plan));
  EXPECT_THAT(Problem(plan), HasSubstr("waits in a circle: for ranks of its own role"));
}

}  // namespace
}  // namespace planwright
