// Storage that fails while a checkpoint is saved: the run ends with kExitStorage and names rank, step and path; the
// older checkpoints stay good; and the run goes on from them once the storage is back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Storage : public CheckpointRun {
 protected:
  // Mounts that only this process and those that it starts see. They end with it.
  static bool MayMount() {
    static const bool may = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    return may;
  }
  void TearDown() override {
    for (const std::string& mounted : {Checkpoints(), RunDir()}) umount2(mounted.c_str(), MNT_DETACH);
    CheckpointRun::TearDown();
  }

  static bool MountMemory(const std::string& folder, const char* size, unsigned long flags = 0) {
    fs::create_directories(folder);
    return mount("none", folder.c_str(), "tmpfs", flags, (std::string("size=") + size).c_str()) == 0;
  }

  // `what`: a regular expression of what follows the step in the message.
  void ExpectFailure(const Ended& ended, const std::string& what) {
    EXPECT_EQ(ended.status, kExitStorage) << ended.output;
    EXPECT_THAT(ended.output, ContainsRegex("rank [01] on [^:]+: the checkpoint of step [0-9]+: " + what));
    EXPECT_THAT(ended.output, ContainsRegex("error: rank [01] could not write the run directory on "));
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
  }
};

TEST_F(Storage, ThatIsFull) {
  if (!MayMount()) GTEST_SKIP() << "mounting is not permitted here";
  ASSERT_TRUE(MountMemory(Checkpoints(), "5m"));  // one checkpoint has 2.8 MB
  const Ended ended = Run(8);
  ExpectFailure(ended, "cannot write " + Checkpoints() + "/step-00000004.life-1/rank-.*: No space left on device");
  EXPECT_EQ(Outcome().at("exit_code"), kExitStorage);
  EXPECT_THAT(Outcome().at("message"), HasSubstr("the checkpoint of step 4"));
  ExpectWholeCheckpoints(1);
  ASSERT_TRUE(MountMemory(Checkpoints(), "64m", MS_REMOUNT));
  const Ended again = Run(8);
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resuming after step 2"));
  ExpectCurve(8);
}

// The launcher cannot write outcome.json then, and must not lose why the run ended.
TEST_F(Storage, ThatIsFullForAllFiles) {
  if (!MayMount()) GTEST_SKIP() << "mounting is not permitted here";
  ASSERT_TRUE(MountMemory(RunDir(), "200m"));
  const Started started = Begin(kSteps);
  // Checkpoints are written one after the other: with the second one begun, the first is whole.
  std::vector<std::string> begun;
  WaitForNewCheckpoint(begun);
  WaitForNewCheckpoint(begun);
  const std::string filler = RunDir() + "/filler";
  {
    // The run stands still meanwhile: on a busy machine it could be done before the files are full.
    const std::vector<pid_t> run = ProcessesWith(RunDir());
    for (pid_t process : run) kill(process, SIGSTOP);
    std::ofstream file(filler, std::ios::binary);
    for (const std::string chunk(1 << 16, 'x'); file;) file << chunk << std::flush;
    for (pid_t process : run) kill(process, SIGCONT);
  }
  const Ended ended = End(started);
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("No space left on device"));
  EXPECT_THAT(ended.output, HasSubstr("error: rank "));
  // The log had room for a line.
  for (const char* command : {"status", "report"})
    EXPECT_THAT(Plan({command, RunDir()}).output, HasSubstr("ended with exit status 15: rank "));
  fs::remove(filler);
  const size_t steps = Curve().size() + 2;
  const Ended again = Run(static_cast<int>(steps));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resuming after step "));
  ExpectCurve(steps);
}

// Before the first step, and at the last line.
TEST_F(Storage, ThatIsFullBeforeTheLaunch) {
  if (!MayMount()) GTEST_SKIP() << "mounting is not permitted here";
  ASSERT_TRUE(MountMemory(RunDir(), "64k"));
  {
    std::ofstream file(RunDir() + "/.filler", std::ios::binary);
    for (const std::string chunk(1 << 12, 'x'); file;) file << chunk << std::flush;
  }
  const Ended ended = Run(2);
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("error: cannot write " + RunDir() + "/.*: No space left on device"));
}

TEST_F(Storage, ThatIsFullForTheOutcome) {
  fs::create_directories(RunDir());
  fs::create_symlink("/dev/full", RunDir() + "/outcome.json");
  const Ended ended = Run(2);
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("the run is done, but its outcome is not written: cannot write " + RunDir() +
                                      "/outcome.json: No space left on device"));
  ExpectCurve(2);
}

TEST_F(Storage, ThatIsFullForWhatIsPrinted) {
  for (const auto& [to, place, status] :
       {std::tuple("> /dev/full", "/dev/full", kExitSuccess), std::tuple("--json > /dev/full", "/dev/full", kExitUsage),
        std::tuple(">&- <&-", "its output, which is closed", kExitSuccess)}) {
    const std::string command =
        InBuild("bin/plan") + " launch " + Recipe() + " --local --yes --steps 1 --run-dir " + RunDir() + " " + to;
    const Ended ended = End(StartProgram({"/bin/sh", "-c", command}, {}, Folder() + "/output"));
    EXPECT_EQ(ended.status, status) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(std::string("the run is done, but what it printed is not all in ") + place));
    EXPECT_EQ(Outcome().at("exit_code"), 0);
    fs::remove_all(RunDir());
  }
}

// Checkpoints are what a disk is for; logs are not.
TEST_F(Storage, ThatHasNoRoomForLogs) {
  fs::create_directories(RunDir() + "/logs");
  for (const char* name : {"rank0000.log", "rank0000.out", "rank0001.log"})
    fs::create_symlink("/dev/full", RunDir() + "/logs/" + name);
  const Ended ended = Run(4);
  EXPECT_EQ(ended.status, 0) << ended.output;
  for (const char* rank : {"0", "1"}) {
    EXPECT_THAT(ended.output, ContainsRegex(std::string("rank ") + rank +
                                            " cannot write its log .*/rank000.\\.log \\(No space left on device\\)"));
  }
  EXPECT_THAT(ended.output, HasSubstr("[rank 0] what it prints is missing in " + RunDir() +
                                      "/logs/rank0000.out from here on: No space left on device\n"));
  EXPECT_THAT(ReadAll(RunDir() + "/logs/rank0001.out"), HasSubstr("cannot write its log"));
  ExpectCurve(4);
}

// As `ulimit -f` and quotas do.
TEST_F(Storage, ThatLetsNoFileGrow) {
  ASSERT_EQ(Run(2).status, 0);
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit before = limit;
  limit.rlim_cur = 1'900'000;  // the shard of rank 1 has more
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Started started = Begin(8);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ExpectFailure(End(started), "cannot write " + Checkpoints() + "/step-00000004.life-2/rank-00001.*: File too large");
  EXPECT_EQ(Outcome().at("rank"), 1);
  ExpectWholeCheckpoints(1);
  EXPECT_EQ(Run(8).status, 0);
  ExpectCurve(8);
}

TEST_F(Storage, ThatIsReadOnly) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string folder = Checkpoints();
  const bool mounts = MayMount();
  if (mounts) {
    ASSERT_EQ(mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(mount("none", folder.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr), 0);
  } else if (geteuid() != 0) {
    fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  } else {
    GTEST_SKIP() << "mounting is not permitted here, and permissions do not bind the superuser";
  }
  const Ended ended = Run(8);
  if (mounts) {
    ASSERT_EQ(umount(folder.c_str()), 0);
  } else {
    fs::permissions(folder, fs::perms::owner_all);
  }
  ExpectFailure(ended, "cannot make the folder " + folder + "/step-00000006.life-2: ");
  ExpectWholeCheckpoints(2);
  EXPECT_EQ(Run(8).status, 0);
  ExpectCurve(8);
}

// The new checkpoint is whole then. What stays is told once.
TEST_F(Storage, ThatKeepsAnOldCheckpoint) {
  if (!MayMount()) GTEST_SKIP() << "mounting is not permitted here";
  ASSERT_EQ(Run(4).status, 0);
  const std::string old = Checkpoints() + "/step-00000002.life-1", manifest = old + "/manifest.json";
  ASSERT_EQ(mount(manifest.c_str(), manifest.c_str(), nullptr, MS_BIND, nullptr), 0);
  const Ended ended = Run(12, {"checkpoint.keep_last=2"});
  ASSERT_EQ(umount(manifest.c_str()), 0);
  EXPECT_EQ(ended.status, 0) << ended.output;
  const std::string log = ReadAll(RunDir() + "/logs/rank0000.log"), line = old + " stays: cannot remove " + old;
  const size_t first = log.find(line);
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find(line, first + 1), std::string::npos) << log;
  EXPECT_THAT(CheckpointNames(), ::testing::Contains("step-00000002.life-1"));
  ExpectCurve(12);
  EXPECT_EQ(Run(14, {"checkpoint.keep_last=2"}).status, 0);
  ExpectWholeCheckpoints(2);
}

// A disk that is gone. Nothing is written beside it: what comes back is what was there.
TEST_F(Storage, ThatVanishes) {
  const std::string away = Folder() + "/away";
  std::vector<std::string> known;
  for (const bool while_saving : {false, true}) {
    const Started started =
        BeginPaused(kSteps, {.rank = 1, .list = "step", .step = static_cast<int>(Curve().size()) + 8});
    WaitForRanks();
    for (int i = 0; i < 2; ++i) WaitForNewCheckpoint(known);
    if (!while_saving) WaitForPause(1);
    fs::rename(Checkpoints(), away);
    const Ended ended = GoOn(started);
    ExpectFailure(ended, ".*" + Checkpoints() + "/step-.*No such file or directory");
    EXPECT_FALSE(fs::exists(Checkpoints()));
    fs::rename(away, Checkpoints());
  }
  EXPECT_EQ(Plan({"checkpoint", "verify", RunDir(), "--all"}).status, 0);
  const size_t steps = Curve().size() + 2;
  const Ended again = Run(static_cast<int>(steps));
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_THAT(again.output, HasSubstr("resuming after step "));
  ExpectCurve(steps);
}

TEST_F(Storage, ThatVanishesWithAllFiles) {
  const Started started = BeginPaused(kSteps, {.rank = 1, .list = "step", .step = 6});
  WaitForPause(1);
  const std::string away = Folder() + "/away";
  fs::rename(RunDir(), away);
  const Ended ended = GoOn(started);
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  EXPECT_THAT(ended.output, ContainsRegex("the checkpoint of step [0-9]+: .*" + RunDir()));
  EXPECT_FALSE(fs::exists(RunDir()));
  fs::rename(away, RunDir());
  const size_t steps = Curve().size() + 2;
  EXPECT_EQ(Run(static_cast<int>(steps)).status, 0);
  ExpectCurve(steps);
}

}  // namespace
}  // namespace planwright::testing
