// `plan launch --try`: two steps of the real plan with the real programs, which leave a verdict and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Trial : public CheckpointRun {
 protected:
  std::string TrialDir() const { return RunDir() + ".try"; }
  // `plan launch ... --try` of the recipe that Begin launches.
  std::vector<std::string> Words(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {InBuild("bin/plan"),
                                      "launch",
                                      Recipe(),
                                      "modules.language.placement.first_rank=1",
                                      "batch.micro_samples=2",
                                      "budget.train_samples=320",
                                      "budget.learning_rate.decay_samples=320",
                                      "checkpoint.every_steps=2",
                                      "--yes",
                                      "--try",
                                      "--run-dir",
                                      RunDir()};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Ended Try(const std::vector<std::string>& more, const std::vector<std::string>& environment = {}) {
    return End(StartProgram(Words(more), environment, Folder() + "/tried"));
  }
  // Through two agents, of which the second has the name node-b, where that is permitted. `there`: what is done on the
  // second node before.
  Ended TryOnTwoNodes(std::vector<std::string> more, const std::string& there = "true") {
    more.insert(more.end(), {"--agents", "cluster.nodes=2", "cluster.gpus_per_node=1"});
    const Started launch = StartProgram(Words(more), {}, Folder() + "/tried");
    const std::string agent = "exec " + InBuild("bin/plan") + " agent " + TrialDir() + "/job/head.json --node ";
    const std::string apart = geteuid() == 0 ? "exec unshare --mount --uts sh -c 'hostname node-b && " : "exec sh -c '";
    const Started agents[] = {
        StartProgram({"/bin/sh", "-c", agent + "0"}, {}, Folder() + "/agent0"),
        StartProgram({"/bin/sh", "-c", apart + there + " && " + agent + "1'"}, {}, Folder() + "/agent1")};
    const Ended tried = End(launch);
    for (const Started& one : agents) {
      const Ended ended = End(one);
      EXPECT_EQ(ended.status, 0) << ended.output;
    }
    return tried;
  }
  json Verdict() const { return json::parse(ReadAll(TrialDir() + "/outcome.json"), nullptr, false); }
  static std::string Of(const json& outcome, const std::string& what) {
    for (const json& line : outcome["trial"]["lines"]) {
      if (line["what"] == what) return line["verdict"];
    }
    return "";
  }
};

TEST_F(Trial, PassesAndLeavesNothingThatALaunchWouldTakeForProgress) {
  const Ended tried = Try({"--local"});
  ASSERT_EQ(tried.status, 0) << tried.output;
  EXPECT_THAT(tried.output, AllOf(HasSubstr("\nPASS  start   2 ranks on "), HasSubstr("\nPASS  memory  on "),
                                  HasSubstr("\nPASS  loss    loss "), HasSubstr("\nOPEN  time    step 2 took "),
                                  HasSubstr("\nOPEN  links   "), HasSubstr("\nthe first step was done "),
                                  HasSubstr("\nthe trial passed: the same line without --try launches the run\n")));
  EXPECT_FALSE(fs::exists(RunDir()));
  for (const char* name : {"/lives", "/checkpoints"}) EXPECT_FALSE(fs::exists(TrialDir() + name)) << name;
  const json outcome = Verdict();
  EXPECT_EQ(outcome["exit_code"], 0);
  EXPECT_EQ(outcome["trial"]["passed"], true);
  EXPECT_GT(outcome["trial"]["first_step_seconds"], 0);
  EXPECT_THAT(Plan({"status", TrialDir()}).output, HasSubstr("PASS  start   2 ranks"));
  const Ended as_json = Plan({"status", TrialDir(), "--json"});
  EXPECT_EQ(json::parse(as_json.output, nullptr, false)["life"]["outcome"]["trial"], outcome["trial"]);

  // The plan is the real one, and so are its steps.
  std::vector<double> losses;
  std::ifstream metrics(TrialDir() + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) losses.push_back(json::parse(line)["loss"]);
  ASSERT_EQ(losses.size(), 2U);
  ASSERT_EQ(Run(4).status, 0);
  EXPECT_EQ(json::parse(ReadAll(RunDir() + "/plan.json"))["digest"],
            json::parse(ReadAll(TrialDir() + "/plan.json"))["digest"]);
  ASSERT_EQ(Curve().size(), 4U);
  for (size_t step = 0; step < 2; ++step) EXPECT_EQ(json::parse(Curve()[step])["loss"].get<double>(), losses[step]);

  // Nobody goes on with it, and the next trial takes its place.
  const Ended launched = Plan({"launch", Recipe(), "modules.language.placement.first_rank=1",
                               "checkpoint.every_steps=2", "--local", "--yes", "--run-dir", TrialDir()});
  EXPECT_EQ(launched.status, kExitUsage);
  EXPECT_THAT(launched.output, HasSubstr("choose another --run-dir"));
  EXPECT_EQ(Try({"--local"}).status, 0);
}

TEST_F(Trial, EvaluatesNothing) {
  const Ended tried = Try({"--local", "evaluation={every_samples: 8, sets: [{name: held_out, seed: 7, samples: 8}]}"});
  ASSERT_EQ(tried.status, 0) << tried.output;
  EXPECT_THAT(ReadAll(TrialDir() + "/metrics.jsonl"), Not(HasSubstr("evaluation")));
}

TEST_F(Trial, GoesThroughAgentsOnNodes) {
  // On a network as slow as this one no link is slower than predicted.
  const Ended tried = TryOnTwoNodes({"cluster.device={peak: 1, bandwidth: 50, link: 10, network: 1.0e-6}"});
  EXPECT_EQ(tried.status, 0) << tried.output;
  EXPECT_THAT(tried.output,
              AllOf(HasSubstr("PASS  start "), HasSubstr("\nPASS  time    step 2 took "),
                    HasSubstr("\nPASS  links   exchange over bridge.radio_encoder.language, neighbouring nodes: "),
                    Not(HasSubstr(" over :"))));
  EXPECT_EQ(Verdict()["trial"]["passed"], true);
}

TEST_F(Trial, AFileThatIsAnotherOneOnANodeMakesItFail) {
  if (geteuid() != 0) GTEST_SKIP() << "mounting is not permitted here";
  const std::string waves = Folder() + "/waves";
  fs::copy(InSource("tests/golden/data_fixtures/webdataset"), waves, fs::copy_options::recursive);
  const std::string shard = waves + "/shard-000001.tar";
  ASSERT_TRUE(fs::exists(shard));
  const Ended tried = TryOnTwoNodes(
      {"models.hybrid_moe_tiny.vocabulary=260", "models.radio_vit_tiny.max_image=128", "batch.sequence_length=128",
       "data={kind: sources, tokenizer: bytes, max_patches: 100, sources: [{name: waves, kind: webdataset, shards: " +
           waves + "/*.tar}]}"},
      "mount --bind /dev/null " + shard);
  EXPECT_NE(tried.status, 0) << tried.output;
  EXPECT_THAT(tried.output, HasSubstr("\nFAIL  files   on node-b: "));
  EXPECT_THAT(tried.output, HasSubstr("mount or copy what the recipe names on every node, under the same path"));
  EXPECT_EQ(Of(Verdict(), "files"), "FAIL");
}

TEST_F(Trial, AStepThatIsSlowerThanPredictedMakesItFail) {
  const Ended tried = Try({"--local", "--executor", InBuild("bin/failing_executor"), "cluster.gpus_per_node=2",
                           "cluster.device={peak: 1, bandwidth: 50, link: 10}"},
                          {"PLANWRIGHT_FAULT=slow", "PLANWRIGHT_FAULT_STEP=1", "PLANWRIGHT_FAULT_RANK=1"});
  EXPECT_EQ(tried.status, kExitTrial) << tried.output;
  EXPECT_THAT(tried.output,
              AllOf(HasSubstr("\nFAIL  time    step 2 took "), HasSubstr("what to do: `--trace 2` says which "),
                    HasSubstr("the trial did not pass: ")));
  EXPECT_EQ(Plan({"status", TrialDir()}).status, kExitTrial);
}

TEST_F(Trial, ARankThatFailsMakesItFail) {
  const Ended tried = Try({"--local", "--executor", InBuild("bin/failing_executor")},
                          {"PLANWRIGHT_FAULT=throw", "PLANWRIGHT_FAULT_STEP=2", "PLANWRIGHT_FAULT_RANK=1"});
  EXPECT_EQ(tried.status, kExitInternal) << tried.output;
  EXPECT_THAT(tried.output, AllOf(HasSubstr("PASS  start "), HasSubstr("FAIL  step    1 of 2 steps were done: rank 1"),
                                  HasSubstr("what to do: "), HasSubstr("the trial did not pass: 1 check failed")));
  EXPECT_EQ(Verdict()["trial"]["passed"], false);
  EXPECT_EQ(Plan({"status", TrialDir()}).status, kExitInternal);
}

TEST_F(Trial, NumbersThatAreNotFiniteMakeItFail) {
  const Ended tried = Try({"--local", "--executor", InBuild("bin/failing_executor")},
                          {"PLANWRIGHT_FAULT=nan", "PLANWRIGHT_FAULT_STEP=2", "PLANWRIGHT_FAULT_RANK=1"});
  EXPECT_EQ(tried.status, kExitTrial) << tried.output;
  EXPECT_THAT(tried.output, AllOf(HasSubstr("FAIL  loss "), HasSubstr("mend the recipe or the data")));
  EXPECT_EQ(Of(Verdict(), "loss"), "FAIL");
}

TEST_F(Trial, TakesNoOptionsOfOtherRuns) {
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--steps", "3"}, {"--trace", "2"}, {"--probe", Folder() + "/probe"}}) {
    std::vector<std::string> words = more;
    words.push_back("--local");
    const Ended tried = Try(words);
    EXPECT_EQ(tried.status, kExitUsage);
    EXPECT_THAT(tried.output, HasSubstr(more[0] + " is not for --try, which does 2 steps and keeps nothing"));
  }
  EXPECT_FALSE(fs::exists(TrialDir()));
}

}  // namespace
}  // namespace planwright::testing
