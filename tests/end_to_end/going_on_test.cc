// How a run ends, and the command that it names to go on: pasted into a shell, it does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class GoingOn : public CheckpointRun {
 protected:
  Ended Bash(const std::string& script) {
    return End(StartProgram({"/bin/bash", "-c", script}, {}, Folder() + "/bash.out"));
  }
  static std::string LaunchText(const std::string& words) {
    return InBuild("bin/plan") + " launch " + Recipe() +
           " modules.language.placement.first_rank=1 batch.micro_samples=2 budget.train_samples=320"
           " budget.learning_rate.decay_samples=320 " +
           words + " --local --yes";
  }
  // Pastes what stands below "to go on after step N:", and checks that the run is then as if it had never ended.
  void ExpectGoesOnAsSaid(const std::string& said) {
    const size_t steps = Curve().size();
    const std::string head = "to go on after step ";
    const size_t at = said.find(head), line = said.find("\n  ", at);
    ASSERT_NE(at, std::string::npos) << said;
    const int64_t step = std::stoll(said.substr(at + head.size()));
    EXPECT_LE(step, static_cast<int64_t>(steps));
    EXPECT_GT(step, 0);
    const Ended pasted = Bash(said.substr(line + 3));
    EXPECT_EQ(pasted.status, 0) << pasted.output;
    EXPECT_THAT(pasted.output, HasSubstr("resuming after step " + std::to_string(step) + " "));
    EXPECT_THAT(pasted.output, Not(HasSubstr("to go on after")));
    ExpectCurve(kSteps);
  }
};

TEST_F(GoingOn, AfterAnInterrupt) {
  // A word that a shell would split, and options of the first steps alone.
  const Ended ended = InterruptAt(kSteps, {.rank = 1, .list = "step", .step = 4},
                                  {"launch={deadline: {floor: 600}}", "--trace", "1-2"});
  ASSERT_EQ(ended.status, kExitPreempted) << ended.output;
  ExpectGoesOnAsSaid(ended.output);
}

TEST_F(GoingOn, AfterSoManySteps) {
  const Ended ended = Run(4);
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, AllOf(HasSubstr("to go on after step 4 of 40:"), Not(HasSubstr("--steps"))));
  ExpectGoesOnAsSaid(ended.output);
}

// The head of a job, with an srun that starts its agent here and an sbatch that takes what it gets.
TEST_F(GoingOn, AJob) {
  const std::string programs = Folder() + "/programs", path = "PATH=" + programs + ":$PATH ";
  fs::create_directory(programs);
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(programs + "/" + name) << "#!/bin/bash\n" << text << "\n";
    fs::permissions(programs + "/" + name, fs::perms::owner_all);
  };
  const std::string fault = Folder() + "/fault", mark = Folder() + "/mark";
  write("srun", "[ ! -e " + fault + " ] || . " + fault + "\nwhile [ \"$1\" != " + InBuild("bin/plan") +
                    " ]; do shift; done; exec \"$@\"");
  write("sbatch", "echo \"$@\" >>" + Folder() + "/submitted; echo 7");
  const std::string submit = path + InBuild("bin/plan") + " launch " + Recipe() +
                             " batch.micro_samples=2 budget.train_samples=320 budget.learning_rate.decay_samples=320 "
                             "checkpoint.every_steps=2" +
                             " --slurm --run-dir " + RunDir();
  const auto on_nodes = [&](const std::string& number) {
    return path + "SLURM_JOB_ID=7 SLURM_JOB_NODELIST=localhost SLURM_JOB_NUM_NODES=" + number +
           " SLURM_NODEID=0 exec " + InBuild("bin/plan") + " job " + RunDir();
  };
  const std::string job = on_nodes("1");
  ASSERT_EQ(Bash(submit + " --steps 4").status, 0);
  for (const char* none : {"''", "0", "-1", "1x", "'1 --overlap'", "99999999999"}) {
    const Ended refused = Bash(on_nodes(none));
    EXPECT_EQ(refused.status, kExitUsage) << none;
    EXPECT_THAT(refused.output, HasSubstr("`plan job` runs inside a Slurm job")) << none;
  }
  const Ended four = Bash(job);
  ASSERT_EQ(four.status, 0) << four.output;
  const std::string on = "to go on after step 4 of 40:\n  " + InBuild("bin/plan") + " launch " + RunDir() +
                         "/job/plan.json --slurm --run-dir " + RunDir() + "\n";
  EXPECT_THAT(four.output, HasSubstr(on));
  const std::string submit_again = on.substr(on.find("\n  ") + 3);
  // With an executor that waits in step 7, so that the job is there when it is interrupted. The options of the launch
  // are those of each start of the job, and the steps to trace are done when it starts again.
  ASSERT_EQ(Bash(path + submit_again.substr(0, submit_again.size() - 1) + " --trace 5-6 --executor " +
                 InBuild("bin/matrix_executor"))
                .status,
            0);
  std::ofstream(fault) << "export PLANWRIGHT_FAULT=pause PLANWRIGHT_FAULT_RANK=0 PLANWRIGHT_FAULT_LIST=step "
                       << "PLANWRIGHT_FAULT_STEP=7 PLANWRIGHT_FAULT_NUMBER=0 PLANWRIGHT_FAULT_MOMENT=before "
                       << "PLANWRIGHT_FAULT_MARK=" << mark << "\n";
  const Started started = StartProgram({"/bin/bash", "-c", job}, {}, Folder() + "/job.out");
  ASSERT_TRUE(Eventually([&] { return fs::exists(mark); }));
  kill(started.pid, SIGTERM);
  const Ended ended = GoOn(started);
  EXPECT_EQ(ended.status, kExitPreempted) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr(":\n  sbatch " + RunDir() + "/job/job.sbatch\n"));
  const Ended done = Bash(job);
  EXPECT_EQ(done.status, 0) << done.output;
  EXPECT_THAT(done.output, AllOf(Not(HasSubstr("to go on")), HasSubstr("this life traces none of them")));
  EXPECT_TRUE(fs::exists(RunDir() + "/lives/2/trace.json.gz"));
  EXPECT_EQ(Curve().size(), static_cast<size_t>(kSteps));
}

TEST_F(GoingOn, AfterAFailure) {
  const Ended ended =
      RunUntilKilled(kSteps, {.rank = 1, .list = "step", .step = 5, .number = 1, .waits = FirstManifest(2)});
  ASSERT_EQ(ended.status, kExitPeerLost) << ended.output;
  ExpectGoesOnAsSaid(ended.output);
}

// Steps that are skipped in a row count over lives, so that such a run is never done.
TEST_F(GoingOn, NotBeyondNumbersThatAreNotFinite) {
  for (int life = 1; life <= 2; ++life) {
    const Ended ended =
        Plan({"launch", Recipe(), "--local", "--yes", "budget.learning_rate.peak=1e6", "budget.learning_rate.min=1e5",
              "lints={PW0111: off}", "checkpoint.every_steps=2", "--run-dir", RunDir()});
    ASSERT_EQ(ended.status, kExitNumerics) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("; with this recipe the same will happen again:\n"));
  }
}

// The same command would end in the same way.
TEST_F(GoingOn, NotWithDamagedCheckpoints) {
  ASSERT_EQ(Run(4).status, 0);
  for (const auto& checkpoint : fs::directory_iterator(RunDir() + "/checkpoints"))
    fs::resize_file(checkpoint.path() / "rank-00000.safetensors", 1000);
  const Ended ended = Run(6);
  ASSERT_EQ(ended.status, kExitDamaged) << ended.output;
  EXPECT_THAT(ended.output, AllOf(Not(HasSubstr("to go on")), Not(HasSubstr("to begin again"))));
}

TEST_F(GoingOn, NotWithoutCheckpoints) {
  const Ended ended = Plan({"launch", Recipe(), "--local", "--yes", "divergence={window: 2, factor: 1.000001}",
                            "budget.learning_rate.peak=10", "lints={PW0111: off}", "--run-dir", RunDir()});
  ASSERT_EQ(ended.status, kExitDiverged) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("nothing was kept to go on from: with checkpoint.every_steps=N"));
  const Ended list = Plan({"checkpoint", "ls", RunDir()});
  EXPECT_EQ(list.status, 0);
  EXPECT_EQ(list.output, RunDir() +
                             " has no checkpoints: the run keeps none (checkpoint.every_steps says when to write one); "
                             "they would be in " +
                             RunDir() + "/checkpoints\n");
  const Ended none = Plan({"checkpoint", "ls", Folder()});
  EXPECT_EQ(none.status, kExitUsage);
  EXPECT_THAT(none.output, HasSubstr("error: " + Folder() + " is no run directory"));
  const Ended exported = Plan({"export", RunDir(), "-o", Folder() + "/home"});
  EXPECT_EQ(exported.status, kExitUsage);
  EXPECT_THAT(exported.output, HasSubstr("error: " + RunDir() + " has no checkpoints: the run keeps none"));
}

// The choices of four steps are no choices of all steps.
TEST_F(GoingOn, NotBeyondTheChoicesThatWereRecorded) {
  const auto launch = [&](const std::string& option, const std::string& run) {
    return Bash(LaunchText("checkpoint.every_steps=2") + " --steps 4 --" + option + "-routing " + Folder() +
                "/choices --run-dir " + Folder() + run);
  };
  const Ended recorded = launch("record", "/recorded");
  ASSERT_EQ(recorded.status, 0) << recorded.output;
  EXPECT_THAT(recorded.output, HasSubstr("to go on after step 4 of "));
  const Ended replayed = launch("replay", "/replayed");
  ASSERT_EQ(replayed.status, 0) << replayed.output;
  EXPECT_THAT(replayed.output, Not(HasSubstr("to go on")));
}

// Who reads only the first lines ends the run as who interrupts it: with a checkpoint.
TEST_F(GoingOn, WhenNobodyReadsIt) {
  const Ended ended = Bash(LaunchText("checkpoint.every_steps=2") + " --steps " + std::to_string(kSteps) +
                           " --run-dir " + RunDir() + " 2>" + Folder() + "/err | head -3; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ended.status, kExitPreempted) << ended.output;
  const std::string said = ReadAll(Folder() + "/err");
  EXPECT_THAT(said, AllOf(HasSubstr("preempted by SIGPIPE, with a checkpoint written"), Not(HasSubstr("error"))));
  EXPECT_TRUE(ProcessesWith(RunDir()).empty());
  ExpectGoesOnAsSaid(said);
}

// stderr too: neither of the two closed streams is a second request, which would kill the ranks before they have saved.
TEST_F(GoingOn, WhenNobodyReadsAnyOfIt) {
  const Ended ended = Bash(LaunchText("checkpoint.every_steps=2") + " --steps " + std::to_string(kSteps) +
                           " --run-dir " + RunDir() + " 2>&1 | head -3; exit ${PIPESTATUS[0]}");
  EXPECT_EQ(ended.status, kExitPreempted) << ended.output;
  EXPECT_FALSE(CheckpointNames().empty());
  const size_t steps = Curve().size();
  const Ended on = Run(kSteps);
  EXPECT_EQ(on.status, 0) << on.output;
  EXPECT_THAT(on.output, HasSubstr("resuming after step " + std::to_string(steps) + " "));
  ExpectCurve(kSteps);
}

TEST_F(GoingOn, WhatOnlyPrintsEndsQuietly) {
  for (const std::string command : {"show " + Recipe() + " memory", std::string("explain"), "validate " + Recipe()}) {
    // The reader has gone before the first byte.
    const Ended ended = Bash("exec 3> >(:); wait $!; " + InBuild("bin/plan") + " " + command + " >&3");
    EXPECT_EQ(ended.status, 128 + SIGPIPE) << command;
    EXPECT_EQ(ended.output, "") << command;
  }
}

}  // namespace
}  // namespace planwright::testing
