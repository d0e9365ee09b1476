// The verdict of a trial, from what its ranks would have left: each check passes, fails or stays open by itself.
#include "planner/run/trial/judge_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "planner/base/files/exit_status.h"
#include "planner/predict/estimate/memory.h"
#include "planner/predict/rates/rates.h"
#include "planner/run/trial/step_communications.h"
#include "planner/run/trial/trial_text.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Verdict = TrialLine::Verdict;

const Plan& OnGpus() {
  static const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_2g.yaml"), {});
  return plan;
}
const Plan& OnCpus() {
  static const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                                 {"modules.language.placement.first_rank=1"});
  return plan;
}

constexpr int64_t kGigabyte = 1'000'000'000;

class JudgeTest : public ::testing::Test {
 protected:
  // A trial of two nodes in which all went as planned.
  void SetUpFor(const Plan& plan) {
    plan_ = plan;
    end_ = {.on_gpus = plan.cluster.gpu != "none", .allocated = 1000, .begun = 1001};
    facts_ = {};
    facts_.files.paths = {"/data/a.tar", "/data/b.tar"};
    for (int rank = 0; rank < plan.world_size; ++rank) {
      facts_.ranks.push_back(RankTrial{.rank = rank,
                                       .host = "node" + std::to_string(rank),
                                       .ready = 1004,
                                       .start_up = 3.0 + rank,
                                       .start_parts = "program 1.0, plan 0.1",
                                       .device_total = end_.on_gpus ? 150 * kGigabyte : 0,
                                       .device_free = end_.on_gpus ? 149 * kGigabyte : 0,
                                       .host_available = 100 * kGigabyte,
                                       .resident = kGigabyte,
                                       .files = {{100, ""}, {200, ""}}});
    }
    for (int step = 1; step <= 2; ++step) {
      facts_.steps.push_back({.step = step,
                              .consumed_samples = step * plan.budget.global_samples,
                              .loss = 12.0 - step,
                              .grad_norm = 1,
                              .step_seconds = step == 1 ? 8 : plan.launch.predicted_step});
    }
    facts_.rounds = RoundsOfTrial(plan);
    const Rates rates = RatesOf(plan);
    const std::vector<StepCommunication> steps = StepCommunications(plan);
    for (const StepCommunication& one : steps) {
      const double seconds = rates.known() ? rates.Communication(one.use).seconds : 1;
      facts_.round_seconds.emplace_back(static_cast<size_t>(plan.world_size), seconds);
    }
    if (!end_.on_gpus) return;
    end_.memory.emplace();
    for (const RoleEstimate& estimate : EstimateMemory(plan)) {
      const int64_t planned = estimate.planned.total() - estimate.libraries;
      end_.memory->roles.push_back({.role = estimate.role->name,
                                    .rank = estimate.role->ranks.front().first,
                                    .lines = {{"values of a step", planned, planned}},
                                    .all = {"in all", estimate.planned.total(), estimate.planned.total()}});
    }
  }
  TrialVerdict Verdicts() { return JudgeTrial(plan_, facts_, end_); }
  // The first line of a check.
  TrialLine Line(const std::string& what) {
    for (const TrialLine& line : Verdicts().lines) {
      if (line.what == what) return line;
    }
    return {Verdict::kOpen, what, "(there is no such line)", ""};
  }
  void ExpectFail(const std::string& what, const ::testing::Matcher<std::string>& text, const std::string& mend) {
    const TrialLine line = Line(what);
    EXPECT_EQ(line.verdict, Verdict::kFail) << line.text;
    EXPECT_THAT(line.text, text);
    EXPECT_THAT(line.mend, HasSubstr(mend));
    EXPECT_FALSE(Verdicts().passed());
    EXPECT_THAT(TrialText(Verdicts()),
                AllOf(HasSubstr("FAIL  " + what), HasSubstr("what to do: "), HasSubstr("the trial did not pass: ")));
  }

  Plan plan_;
  TrialFacts facts_;
  TrialEnd end_;
};

TEST_F(JudgeTest, OnGpusAllPasses) {
  SetUpFor(OnGpus());
  ASSERT_GT(plan_.launch.predicted_step, 0);
  const TrialVerdict trial = Verdicts();
  EXPECT_TRUE(trial.passed());
  std::set<std::string> checks;
  for (const TrialLine& line : trial.lines) {
    EXPECT_EQ(line.verdict, Verdict::kPass) << line.what << ": " << line.text;
    EXPECT_EQ(line.mend, "");
    checks.insert(line.what);
  }
  EXPECT_EQ(checks, (std::set<std::string>{"start", "files", "memory", "loss", "time", "links"}));
  EXPECT_EQ(trial.first_step, (FirstStep{.agents = 1, .start = 3, .step = 8}));
  const auto read = TrialVerdictFrom(nlohmann::json::parse(TrialVerdictJson(trial).dump()));
  EXPECT_EQ(read, trial);
  EXPECT_THAT(
      TrialText(trial),
      AllOf(HasSubstr("PASS  start   2 ranks on node0, node1 loaded"),
            HasSubstr("the slowest, rank 1, was ready after 4.00 s: program 1.0, plan 0.1"),
            HasSubstr("PASS  files   2 files of data and weights are readable on node0, node1"),
            HasSubstr("PASS  loss    loss 11 and gradient norm 1, then loss 10 and gradient norm 1"),
            HasSubstr("the first step was done 12.0 s after the nodes were there: agents 1.00 s, ranks 3.00 s, the "
                      "step 8.00 s (the aim: a minute)\n"),
            HasSubstr("the trial passed: the same line without --try launches the run")));
}

TEST_F(JudgeTest, OnCpusNothingIsPredicted) {
  SetUpFor(OnCpus());
  EXPECT_TRUE(Verdicts().passed());
  for (const char* what : {"start", "files", "memory", "loss"}) EXPECT_EQ(Line(what).verdict, Verdict::kPass) << what;
  EXPECT_EQ(Line("time").verdict, Verdict::kOpen);
  EXPECT_THAT(Line("time").text, HasSubstr("nothing is predicted"));
  EXPECT_EQ(Line("links").verdict, Verdict::kOpen);
  EXPECT_THAT(Line("memory").text, AllOf(HasSubstr("1 rank needs "), HasSubstr(" held 1.00 GB, the most rank "),
                                         HasSubstr("100.00 GB were free")));
}

TEST_F(JudgeTest, ARankThatDoesNotStart) {
  SetUpFor(OnGpus());
  facts_.ranks[1]->ready = 0;
  facts_.steps.clear();
  end_.exit_code = kExitDevice, end_.cause = "rank 1 lost its device";
  ExpectFail("start", HasSubstr("1 of 2 ranks were ready: rank 1 lost its device"), "look for `Xid`");
  EXPECT_FALSE(Verdicts().first_step.has_value());
  facts_.ranks[1].reset();
  ExpectFail("start", HasSubstr("1 of 2 ranks were ready"), "look for `Xid`");
}

TEST_F(JudgeTest, AFileThatANodeDoesNotHave) {
  SetUpFor(OnGpus());
  facts_.ranks[1]->files[1] = {0, "cannot read /data/b.tar: No such file or directory"};
  ExpectFail("files", HasSubstr("on node1: cannot read /data/b.tar"), "on every node, under the same path");
  facts_.ranks[1]->files[1] = {150, ""};
  ExpectFail("files", HasSubstr("on node1: /data/b.tar has 150 bytes, and 200 on node0"), "on every node");
}

TEST_F(JudgeTest, MemoryThatIsNotThere) {
  SetUpFor(OnGpus());
  facts_.ranks[1]->device_free = kGigabyte;
  ExpectFail("memory", HasSubstr("the GPU of rank 1 on node1 had 1.00 GB free of 150.00 GB"), "nvidia-smi");
}

TEST_F(JudgeTest, MemoryThatIsMoreThanPlanned) {
  SetUpFor(OnGpus());
  MemoryLine& line = end_.memory->roles[0].lines[0];
  line.measured = static_cast<int64_t>(static_cast<double>(*line.planned) * (kMoreMemory - 0.01));
  EXPECT_EQ(Line("memory").verdict, Verdict::kPass);
  line.measured = static_cast<int64_t>(static_cast<double>(*line.planned) * (kMoreMemory + 0.01));
  ExpectFail("memory", HasSubstr("tensors held "), "leave more room");
}

TEST_F(JudgeTest, ANodeThatIsTooSmall) {
  SetUpFor(OnCpus());
  facts_.ranks[1]->host_available = 1000;
  ExpectFail("memory", HasSubstr("on node1, of 2 nodes the fullest"), "fewer ranks on the node");
}

TEST_F(JudgeTest, NumbersThatAreNotFinite) {
  SetUpFor(OnGpus());
  facts_.steps[1].skipped = true;
  ExpectFail("loss", HasSubstr("(skipped)"), "mend the recipe or the data");
  SetUpFor(OnGpus());
  facts_.steps[0].grad_norm = std::nan("");
  ExpectFail("loss", HasSubstr("gradient norm nan"), "mend the recipe or the data");
}

TEST_F(JudgeTest, AStepThatFails) {
  SetUpFor(OnGpus());
  facts_.steps.pop_back();
  end_.exit_code = kExitDeviceMemory, end_.cause = "rank 0 ran out of GPU memory";
  ExpectFail("step", HasSubstr("1 of 2 steps were done: rank 0 ran out of GPU memory"), "end other programs");
}

TEST_F(JudgeTest, AStepThatLeftNoRecord) {
  SetUpFor(OnGpus());
  facts_.steps.pop_back();
  ExpectFail("step", HasSubstr("1 of 2 steps were done: metrics.jsonl of the trial has no more"), "");
}

// Neither does a trial pass whose exit status says that it failed.
TEST_F(JudgeTest, ARankThatFailsAfterItsSteps) {
  SetUpFor(OnGpus());
  end_.exit_code = kExitStorage, end_.cause = "rank 1 cannot write";
  for (std::vector<double>& seconds : facts_.round_seconds) seconds.assign(seconds.size(), 0);
  ExpectFail("end", HasSubstr("rank 1 cannot write"), "");
  EXPECT_EQ(Line("links").text, "(there is no such line)");
}

// It is said, and it is no verdict.
TEST_F(JudgeTest, AFirstStepThatComesLate) {
  SetUpFor(OnGpus());
  for (auto& rank : facts_.ranks) rank->ready = 1092;
  EXPECT_TRUE(Verdicts().passed());
  EXPECT_THAT(
      TrialText(Verdicts()),
      HasSubstr("the first step was done 1 min 40 s after the nodes were there: agents 1.00 s, ranks 1 min 31 s, "
                "the step 8.00 s (longer than the aim: a minute)\n"));
}

TEST_F(JudgeTest, AStepThatIsSlow) {
  SetUpFor(OnGpus());
  facts_.steps[1].step_seconds = (kSlowStep - 0.01) * plan_.launch.predicted_step;
  EXPECT_EQ(Line("time").verdict, Verdict::kPass);
  facts_.steps[1].step_seconds = (kSlowStep + 0.01) * plan_.launch.predicted_step;
  ExpectFail("time", HasSubstr("(+51 %)"), "plan measure");
  end_.on_gpus = false;
  EXPECT_EQ(Line("time").verdict, Verdict::kOpen) << "that says nothing of ranks on CPUs";
}

TEST_F(JudgeTest, ALinkThatIsSlow) {
  SetUpFor(OnGpus());
  ASSERT_FALSE(facts_.rounds.list.empty());
  facts_.round_seconds[0][0] *= kSlowLink - 0.1;
  EXPECT_TRUE(Verdicts().passed());
  facts_.round_seconds[0][0] = 1000;
  ExpectFail("links", AllOf(HasSubstr("in 16 min 40 s, predicted "), HasSubstr("8.19 kB among 2 ranks")),
             "look at the links of node0, node1");
}

// What was not timed is not passed over.
TEST_F(JudgeTest, LinksWithoutTimes) {
  SetUpFor(OnGpus());
  const TrialFacts facts = facts_;
  facts_.round_seconds[0].assign(2, 0);
  EXPECT_EQ(Line("links").verdict, Verdict::kOpen);
  EXPECT_THAT(Line("links").text, HasSubstr(": no rank has a time of it"));
  facts_ = facts;
  facts_.rounds = {};
  facts_.round_seconds.clear();
  EXPECT_EQ(Line("links").verdict, Verdict::kOpen);
  EXPECT_THAT(Line("links").text, HasSubstr("rounds.json, which says what was timed, cannot be read"));
}

// The groups of one shape communicate at the same time: the one that is slow is named.
TEST_F(JudgeTest, OfSeveralGroupsTheSlowestIsNamed) {
  SetUpFor(
      testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                            {"cluster.nodes=4", "cluster.gpus_per_node=1", "modules.radio_encoder.placement.ranks=2",
                             "modules.radio_encoder.parallel.tp=2", "modules.language.placement.first_rank=2",
                             "modules.language.placement.ranks=2", "modules.language.parallel.tp=2"}));
  for (size_t i = 0; i < facts_.rounds.list.size(); ++i) {
    if (facts_.rounds.list[i].members() != 2) continue;
    facts_.round_seconds[i][2] = 1000;
    std::string text;
    for (const TrialLine& line : Verdicts().lines) text += line.text + "\n";
    EXPECT_THAT(text, HasSubstr("slowest of 2: ranks 2-3 on node2, node3 in 16 min 40 s"));
    return;
  }
  FAIL() << "no group of two ranks";
}

// An exchange has no group: bridges and stages are its names.
TEST(StepCommunications, EachHasANameAndGoesBothWays) {
  const std::string tiny = "recipes/nemotron_moe_vlm_tiny.yaml";
  const std::vector<std::string> stages = {"cluster.gpus_per_node=3", "modules.language.placement.first_rank=1",
                                           "modules.language.placement.ranks=2", "modules.language.parallel.pp=2"};
  std::set<std::string> exchanges;
  for (const auto& [recipe, words] : {std::pair(tiny, stages), {"recipes/nemotron_moe_vlm_54l_9n.yaml", {}}}) {
    for (const StepCommunication& one : StepCommunications(testing::CompiledFile(InSource(recipe), words))) {
      EXPECT_FALSE(one.groups.empty() || one.groups.contains("")) << OpName(one.use.kind);
      EXPECT_FALSE(one.use.sends_only) << OpName(one.use.kind);
      if (recipe == tiny && one.use.kind == OpKind::kExchange) exchanges = one.groups;
    }
  }
  EXPECT_EQ(exchanges, (std::set<std::string>{"bridge.radio_encoder.language", "language.pp"}));
}

TEST(StepCommunications, BetweenNodesNeighboursExchange) {
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_54l_9n.yaml"), {});
  const CommunicationRounds rounds = RoundsOfTrial(plan);
  bool neighbours = false;
  for (const CommunicationRound& round : rounds.list) {
    EXPECT_LE(static_cast<double>(round.bytes), 2 * kMostTriedBytes);
    neighbours |= round.kind == OpKind::kExchange && round.per_node == 1 && round.nodes == 2 &&
                  static_cast<double>(round.bytes) >= 0.99 * kMostTriedBytes;
  }
  EXPECT_TRUE(neighbours);
  const absl::StatusOr<CommunicationRounds> read = ReadRounds(RoundsJson(rounds));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->list, rounds.list);
}

}  // namespace
}  // namespace planwright
