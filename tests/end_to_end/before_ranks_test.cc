// What is wrong with a launch is told once, by the launcher, before a rank is started: weights or a batch that do not
// fit, an executor without the plan's devices, too few cores, and a run that is done.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
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
using ::testing::HasSubstr;
using ::testing::Not;

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++count;
  return count;
}

class BeforeRanks : public CheckpointRun {
 protected:
  std::string Other() const { return Folder() + "/other"; }

  // A launch of the tiny recipe into OTHER is refused with one error, by the launcher, and leaves nothing.
  void ExpectRefused(const std::vector<std::string>& words, int status, const std::string& what) {
    std::vector<std::string> argv = {"launch", Recipe(), "--run-dir", Other()};
    argv.insert(argv.end(), words.begin(), words.end());
    const Ended ended = Plan(argv);
    EXPECT_EQ(ended.status, status) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr(what), Not(HasSubstr("[rank"))));
    EXPECT_EQ(Count(ended.output, "error: "), 1U) << ended.output;
    EXPECT_FALSE(fs::exists(Other())) << ended.output;
  }
  void ExpectInvalid(const std::vector<std::string>& words, const std::string& what) {
    std::vector<std::string> argv = {"validate", Recipe()};
    argv.insert(argv.end(), words.begin(), words.end());
    const Ended ended = Plan(argv);
    EXPECT_EQ(ended.status, kExitInvalid) << ended.output;
    EXPECT_THAT(ended.output,
                AllOf(HasSubstr(what), HasSubstr("[PW0616 FilesDoNotFit]"), HasSubstr("<command line>:1:")));
  }
};

TEST_F(BeforeRanks, ARunThatIsDone) {
  ASSERT_EQ(Run(2).status, 0);
  const Ended again = Run(2);
  EXPECT_EQ(again.status, kExitSuccess) << again.output;
  EXPECT_EQ(again.output, "the run in " + RunDir() +
                              " is done at step 2 of 40: --steps 2 asks for no more; a larger number, or none, does\n");
  EXPECT_FALSE(fs::exists(RunDir() + "/lives/2"));
  const Ended json = Run(2, {"--json"});
  EXPECT_THAT(json.output, HasSubstr("\"exit_code\": 0"));
  const Ended traced = Run(4, {"--trace", "2-3"});
  EXPECT_EQ(traced.status, kExitUsage);
  EXPECT_EQ(traced.output, "error: --trace asks for steps 2-3, and the run in " + RunDir() +
                               " has done steps 1 to 2 of 40; trace later ones, or choose another --run-dir\n");
  const Ended more = Run(4);
  EXPECT_EQ(more.status, 0) << more.output;
  EXPECT_THAT(more.output, HasSubstr("resuming after step 2 "));
  ExpectCurve(4);
  ASSERT_EQ(Run(kSteps).status, 0);
  EXPECT_EQ(Run(kSteps + 10).output, "the run in " + RunDir() +
                                         " is done at step 40 of 40: to train more, set budget.train_samples above "
                                         "320; to train anew, choose another --run-dir\n");
}

TEST_F(BeforeRanks, WeightsOfAnotherModel) {
  ASSERT_EQ(Run(2).status, 0);
  const std::string from = "initialize.from=" + RunDir(), other = "models.hybrid_moe_tiny.moe.ffn=32";
  ExpectRefused({from, other, "--local", "--yes"}, kExitUsage, "is [48, 64], the model's is [32, 64]");
  ExpectRefused({from, other, "--slurm"}, kExitUsage, "is [48, 64], the model's is [32, 64]");
  ExpectInvalid({from, other}, "is [48, 64], the model's is [32, 64]");
  EXPECT_EQ(Plan({"validate", Recipe(), from}).status, 0);
  // Weights that are elsewhere: no error where nothing runs, an error where they will be read.
  const std::string gone = "initialize.from=" + Folder() + "/gone";
  const Ended valid = Plan({"validate", Recipe(), gone});
  EXPECT_EQ(valid.status, 0) << valid.output;
  EXPECT_THAT(valid.output, HasSubstr("note: " + Folder() + "/gone is not on this machine"));
  ExpectRefused({gone, "--local", "--yes"}, kExitUsage,
                "cannot read " + Folder() + "/gone: No such file or directory, where the recipe has its weights");
  // Once it has checkpoints of its own, a run needs those weights no more.
  ASSERT_EQ(Plan({"launch", Recipe(), from, "checkpoint.every_steps=1", "--local", "--yes", "--steps", "1", "--run-dir",
                  Other()})
                .status,
            0);
  fs::rename(RunDir(), Folder() + "/away");
  const Ended on = Plan(
      {"launch", Recipe(), from, "checkpoint.every_steps=1", "--local", "--yes", "--steps", "2", "--run-dir", Other()});
  EXPECT_EQ(on.status, 0) << on.output;
  EXPECT_THAT(on.output, HasSubstr("resuming after step 1 "));
}

// A safetensors file of two samples of 8 tokens. The recipe's samples have 48.
TEST_F(BeforeRanks, ABatchOfAnotherShape) {
  const std::string path = Folder() + "/batch.safetensors";
  const std::string header = R"({"token_ids":{"dtype":"I64","shape":[2,8],"data_offsets":[0,128]},)"
                             R"("labels":{"dtype":"I64","shape":[2,8],"data_offsets":[128,256]},)"
                             R"("loss_mask":{"dtype":"F64","shape":[2,8],"data_offsets":[256,384]}})";
  const uint64_t length = header.size();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(&length), 8)
      << header << std::string(384, 0);
  const std::vector<std::string> data = {"data={kind: recorded, image_token: 200, path: " + path + "}"};
  const std::string what = path + ": token_ids is [2, 8], but the plan and the rest of the batch need [2, 48]";
  ExpectInvalid(data, what);
  ExpectRefused({data[0], "--local", "--yes"}, kExitUsage, what);
}

// With agents and by Slurm, too: nobody waits for an agent or in a queue.
TEST_F(BeforeRanks, AnExecutorWithoutThePlansDevices) {
  if (Plan({"launch", Recipe(), "--local", "--device", "cuda", "--run-dir", Other()}).output.find("for CPUs") ==
      std::string::npos)
    GTEST_SKIP() << "this executor was built with CUDA";
  for (const char* way : {"--local", "--slurm", "--agents"})
    ExpectRefused({"cluster.gpu=h200_sxm", way}, kExitUsage, "the plan is for h200_sxm GPUs, and the executor ");
  ExpectRefused({"--device", "cuda", "--slurm"}, kExitUsage, "--device cuda asks for GPUs, and the executor ");
}

class FewCores : public BeforeRanks {
 protected:
  void SetUp() override {
    BeforeRanks::SetUp();
    ASSERT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &before_)) continue;
      CPU_SET(core, &one);
      break;
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  void TearDown() override {
    sched_setaffinity(0, sizeof before_, &before_);
    BeforeRanks::TearDown();
  }

  // Launches on a terminal, with two ranks and one core, and types the answer.
  Ended OnATerminal(const std::string& answer) {
    const std::string plan = InBuild("bin/plan"), recipe = Recipe(), run = Other();
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) {
      execl(plan.c_str(), plan.c_str(), "launch", recipe.c_str(), "modules.language.placement.first_rank=1", "--local",
            "--steps", "1", "--run-dir", run.c_str(), nullptr);
      _exit(99);
    }
    Ended ended;
    bool answered = false;
    char bytes[4096];
    for (ssize_t count; (count = read(terminal, bytes, sizeof bytes)) > 0;) {
      ended.output.append(bytes, count);
      if (answered || ended.output.find("[y/N] ") == std::string::npos) continue;
      answered = true;
      EXPECT_EQ(write(terminal, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    }
    close(terminal);
    ended.status = WaitFor(pid, kPatience).value_or(-1);
    return ended;
  }

  cpu_set_t before_;
};

TEST_F(FewCores, AreRefusedWithoutATerminal) {
  const std::vector<std::string> two = {"modules.language.placement.first_rank=1", "--local"};
  ExpectRefused(two, kExitUsage, "the plan has 2 ranks, and 1 core is here for them: they take turns; give --yes");
}

TEST_F(FewCores, AreAPersonsToAccept) {
  const Ended no = OnATerminal("n\n");
  EXPECT_EQ(no.status, kExitUsage) << no.output;
  EXPECT_THAT(no.output, AllOf(HasSubstr("they take turns. Go on? [y/N] "),
                               HasSubstr("not started, as you say (exit status 2): nothing was written")));
  EXPECT_FALSE(fs::exists(Other()));
  const Ended yes = OnATerminal("y\n");
  EXPECT_EQ(yes.status, kExitSuccess) << yes.output;
  EXPECT_THAT(yes.output, HasSubstr("step 1/"));
}

}  // namespace
}  // namespace planwright::testing
