// `plan launch --try`: two steps of the real plan with the real programs, which leave a verdict and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

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
  const Ended tried =
      Try({"--local", "evaluation={every_steps: 1, sets: [{name: held_out, kind: mock, seed: 7, samples: 8}]}"});
  ASSERT_EQ(tried.status, 0) << tried.output;
  EXPECT_THAT(ReadAll(TrialDir() + "/metrics.jsonl"), Not(HasSubstr("evaluation")));
}

TEST_F(Trial, GoesThroughAgentsOnNodes) {
  const Started launch =
      StartProgram(Words({"--agents", "cluster.nodes=2", "cluster.gpus_per_node=1"}), {}, Folder() + "/tried");
  std::vector<Started> agents;
  for (int node = 0; node < 2; ++node) {
    agents.push_back(StartProgram({InBuild("bin/plan"), "agent", TrialDir() + "/job/head.json"}, {},
                                  Folder() + "/agent" + std::to_string(node)));
  }
  const Ended tried = End(launch);
  EXPECT_EQ(tried.status, 0) << tried.output;
  for (const Started& agent : agents) EXPECT_EQ(End(agent).status, 0);
  EXPECT_THAT(tried.output, AllOf(HasSubstr("PASS  start "), HasSubstr("exchange over ")));
  EXPECT_EQ(Verdict()["trial"]["passed"], true);
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
