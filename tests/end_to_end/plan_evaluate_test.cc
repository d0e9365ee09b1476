// `plan evaluate` as people use it: what it refuses before a rank starts, and what a killed one leaves
// (docs/training/evaluation.md).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sys/file.h>
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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::string Sets(int samples) {
  return "evaluation={every_samples: 16, sets: [{name: held_out, samples: " + std::to_string(samples) + ", seed: 1}]}";
}

class PlanEvaluate : public CheckpointRun {
 protected:
  void SetUp() override {
    CheckpointRun::SetUp();
    ASSERT_EQ(Run(2, {Sets(8)}).status, 0);
  }

  Ended Evaluate(const std::string& recipe, const std::vector<std::string>& words) {
    std::vector<std::string> all = {"evaluate", RunDir(), recipe};
    all.insert(all.end(), words.begin(), words.end());
    return Plan(all);
  }

  // The same with folders that come and go in Temporary().
  // The recipe keeps checkpoints, of which an evaluation writes none.
  Started Start(int samples) const {
    return StartProgram(
        {InBuild("bin/plan"), "evaluate", RunDir(), Recipe(), Sets(samples), "checkpoint.every_steps=2"},
        {"TMPDIR=" + Temporary()}, Folder() + "/evaluated");
  }
  std::string Temporary() const { return Folder() + "/temporary"; }
  std::vector<std::string> TemporaryNames() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Temporary())) names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(PlanEvaluate, TakesTheWeightsOfTheCheckpointAlone) {
  const std::string recipe = Folder() + "/from_elsewhere.yaml";
  std::ofstream(recipe)
      << "extends: " << Recipe() << "\n"
      << "initialize: {sources: [{for: language, from: nowhere}, {for: radio_encoder, from: gone}]}\n";
  const Ended ended = Evaluate(recipe, {Sets(8)});
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("evaluating the weights of " + Checkpoints()), HasSubstr("held_out"),
                                  HasSubstr(", after step 2\n"), Not(HasSubstr("beginning at step"))));
}

// All of it before a rank starts.
TEST_F(PlanEvaluate, RefusesWhatItCannotEvaluate) {
  const std::vector<std::string> curve = Curve();
  const Ended busy = Evaluate(Recipe(), {Sets(8), "--run-dir", RunDir()});
  EXPECT_EQ(busy.status, kExitUsage);
  EXPECT_THAT(busy.output, HasSubstr(RunDir() + " is not empty; choose another --run-dir"));
  EXPECT_EQ(Curve(), curve);

  const Ended compiled = Evaluate(RunDir() + "/plan.json", {});
  EXPECT_EQ(compiled.status, kExitUsage);
  EXPECT_THAT(compiled.output, AllOf(HasSubstr("/plan.json is a compiled plan, whose weights are fixed"),
                                     HasSubstr("give the recipe (.yaml)")));

  const Ended ended = Evaluate(Recipe(), {Sets(8), "models.hybrid_moe_tiny.hidden=128"});
  EXPECT_EQ(ended.status, kExitUsage);
  const std::string first = "error: the weights do not fit the plan:\n  " + Checkpoints();
  EXPECT_EQ(ended.output.rfind(first), ended.output.find(first)) << ended.output;
  EXPECT_THAT(ended.output,
              AllOf(HasSubstr(first), HasSubstr("embeddings.weight is [256, 64], the model's is [256, 128]\n"),
                    Not(HasSubstr("rank 0"))));

  const std::string checkpoint = Checkpoints() + "/step-00000002.life-1", shard = "/rank-00001.safetensors";
  const auto bytes = fs::file_size(checkpoint + shard);
  fs::resize_file(checkpoint + shard, bytes - 1);
  const Ended cut = Plan({"evaluate", checkpoint, Recipe(), Sets(8)});
  EXPECT_EQ(cut.status, kExitDamaged);
  EXPECT_THAT(cut.output,
              HasSubstr("it has " + std::to_string(bytes - 1) + " bytes instead of " + std::to_string(bytes)));
  const Ended none = Evaluate(Recipe(), {Sets(8)});
  EXPECT_EQ(none.status, kExitDamaged);
  EXPECT_THAT(none.output, HasSubstr("error: no checkpoint of " + RunDir() + " is whole; the newest, " + checkpoint));
  fs::remove(checkpoint + "/manifest.json");
  EXPECT_THAT(Plan({"evaluate", checkpoint, Recipe(), Sets(8)}).output, HasSubstr("it has no manifest.json"));
  EXPECT_THAT(Evaluate(Recipe(), {Sets(8)}).output, HasSubstr(RunDir() + " has no checkpoint that counts"));
}

// Weights fit by their shapes, which say nothing of the model's numbers.
TEST_F(PlanEvaluate, AnotherModelOfTheSameShapesIsAPersonsToAccept) {
  const std::string scale = "models.hybrid_moe_tiny.moe.scale=7";
  const Ended other = Evaluate(Recipe(), {Sets(8), scale});
  EXPECT_EQ(other.status, kExitUsage);
  EXPECT_THAT(other.output, AllOf(HasSubstr("modules.language.constants.moe.scale  2.5  ->  7.0"),
                                  HasSubstr("error: the recipe has another model than " + Checkpoints()),
                                  HasSubstr("--accept-changes"), Not(HasSubstr("ready in"))));
  const Ended accepted = Evaluate(Recipe(), {Sets(8), scale, "--accept-changes"});
  EXPECT_EQ(accepted.status, 0) << accepted.output;
  // What only training asks for.
  const Ended training =
      Evaluate(Recipe(), {Sets(8), "models.hybrid_moe_tiny.moe.aux_loss=0.01", "models.hybrid_moe_tiny.init_std=0.5",
                          "models.radio_vit_tiny.positions=interpolate"});
  EXPECT_EQ(training.status, 0) << training.output;
}

// The run that keeps it goes on, and keeps newer ones. That is no damage.
TEST_F(PlanEvaluate, ACheckpointThatIsRemovedMeanwhile) {
  const std::string executor = Folder() + "/executor";
  std::ofstream(executor) << "#!/bin/sh\nrm -r " << Checkpoints() << "/*\nexec " << InBuild("bin/executor")
                          << " \"$@\"\n";
  fs::permissions(executor, fs::perms::owner_all);
  const Ended ended = Evaluate(Recipe(), {Sets(8), "--executor", executor});
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("error: " + Checkpoints() +
                                      "/step-00000002.life-1 was removed while it was evaluated; a run keeps only"));
}

// Typed on a terminal, as its reader would.
TEST_F(PlanEvaluate, ShowsABarOnATerminalUntilCtrlC) {
  const std::string plan = InBuild("bin/plan"), run = RunDir(), recipe = Recipe(), sets = Sets(1'000'000);
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execl(plan.c_str(), plan.c_str(), "evaluate", run.c_str(), recipe.c_str(), sets.c_str(), nullptr);
    _exit(99);
  }
  std::string printed;
  bool typed = false;
  char bytes[4096];
  for (ssize_t count; (count = read(terminal, bytes, sizeof bytes)) > 0;) {
    printed.append(bytes, static_cast<size_t>(count));
    if (typed || printed.find("% round ") == std::string::npos) continue;
    typed = true;
    EXPECT_EQ(write(terminal, "\x03", 1), 1);
  }
  close(terminal);
  EXPECT_EQ(WaitFor(pid, kPatience), 128 + SIGINT) << printed;
  EXPECT_THAT(printed, AllOf(HasSubstr(" of 1000000 of held_out"), HasSubstr("interrupted by SIGINT")));
}

TEST_F(PlanEvaluate, SaysThatItsResultCannotBeWritten) {
  const std::string command = InBuild("bin/plan") + " evaluate " + RunDir() + " " + Recipe() + " '" + Sets(8) + "'";
  const Ended ended = End(StartProgram({"/bin/bash", "-c", command + " >/dev/full"}, {}, Folder() + "/full"));
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("error: cannot write the output"));
}

TEST_F(PlanEvaluate, LeavesNothingForEver) {
  const std::string of_others = Temporary() + "/plan-evaluate-others";
  fs::create_directories(of_others);
  std::ofstream(of_others + "/.planwright-temporary");
  fs::create_directory(Temporary() + "/plan-evaluate-notes");  // of a person, who may call it so
  const int lock = open(of_others.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0) << "as a command that runs";
  const Started started = Start(1'000'000);
  ASSERT_TRUE(Eventually([&] { return !ProcessesWith("executor --plan " + Temporary()).empty(); }));
  ASSERT_EQ(kill(started.pid, SIGKILL), 0);
  EXPECT_EQ(WaitFor(started.pid, kPatience), 128 + SIGKILL);
  EXPECT_EQ(TemporaryNames().size(), 3U);
  EXPECT_TRUE(Eventually([&] { return ProcessesWith("executor --plan " + Temporary()).empty(); }))
      << "ranks do not outlive it";
  const Ended next = End(Start(8));
  EXPECT_EQ(next.status, 0) << next.output;
  EXPECT_THAT(TemporaryNames(), UnorderedElementsAre("plan-evaluate-notes", "plan-evaluate-others"));

  close(lock);
  const Started interrupted = Start(1'000'000);
  ASSERT_TRUE(Eventually([&] { return !ProcessesWith("executor --plan " + Temporary()).empty(); }));
  ASSERT_EQ(kill(interrupted.pid, SIGINT), 0) << "Ctrl-C";
  const Ended ended = End(interrupted);
  EXPECT_EQ(ended.status, 128 + SIGINT) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("interrupted by SIGINT"));
  EXPECT_THAT(TemporaryNames(), ElementsAre("plan-evaluate-notes"));
}

}  // namespace
}  // namespace planwright::testing
