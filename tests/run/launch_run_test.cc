#include "planner/run/launch_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <sstream>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/plan/plan_json.h"
#include "planner/run/launch/local_starter.h"
#include "planner/run/outcome/outcome_text.h"
#include "tests/support/bound_cores.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class LaunchRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "launchXXXXXX";
    folder_ = mkdtemp(pattern.data());
    launch_.executor = InBuild("bin/fake_rank");
    launch_.run_dir = folder_ + "/run";
    plan_.name = "toy";
    plan_.world_size = 2;
    plan_.precision = "fp32";
    plan_.data.kind = DataKind::kRecorded;
    plan_.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 1};
    plan_.origins = {{"toy.yaml", 3, 1, "module language"}};
    plan_.digest = PlanDigest(plan_);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    for (const char* name : {"FAKE_RANK_0", "FAKE_RANK_1"}) unsetenv(name);
  }
  void Tell(int rank, const std::string& words) {
    setenv(("FAKE_RANK_" + std::to_string(rank)).c_str(), words.c_str(), 1);
  }
  Outcome Launch() {
    absl::StatusOr<Outcome> outcome = LaunchRun({plan_}, launch_, starter_, [&](bool is_error, std::string_view line) {
      (is_error ? errors_ : output_).emplace_back(line);
    });
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? *outcome : Outcome{-1, ""};
  }
  std::string File(const std::string& name) {
    return ReadWholeFile(launch_.run_dir + "/" + name, SIZE_MAX).value_or("(missing)");
  }

  std::string folder_;
  RunOptions launch_;
  LocalStarter starter_{"127.0.0.1", "a key"};
  Plan plan_;
  std::vector<std::string> output_, errors_;
};

TEST_F(LaunchRunTest, KeepsPlanLogsAndOutcomeInTheRunDirectory) {
  Tell(0, "say=step:1 err=careful env=WORLD_SIZE");
  Tell(1, "say=hello env=RANK");
  EXPECT_EQ(Launch().exit_code, 0);
  EXPECT_THAT(output_, ::testing::ElementsAre("step:1", "WORLD_SIZE=2"));
  EXPECT_THAT(errors_, ::testing::UnorderedElementsAre("[rank 0] careful", "[rank 1] hello", "[rank 1] RANK=1"));
  EXPECT_EQ(File("logs/rank0001.out"), "hello\nRANK=1\n");
  EXPECT_EQ(nlohmann::json::parse(File("outcome.json"))["cause"], "done");
  absl::StatusOr<Plan> plan = ReadPlan(File("plan.json"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->digest, plan_.digest);
}

TEST_F(LaunchRunTest, EveryRankIsToldItsDeviceAndItsLocalRank) {
  launch_.device = "cuda";
  Tell(0, "env=LOCAL_RANK");
  Tell(1, "env=LOCAL_RANK arguments");
  EXPECT_EQ(Launch().exit_code, 0);
  EXPECT_THAT(output_, ::testing::ElementsAre("LOCAL_RANK=0"));
  EXPECT_THAT(errors_, ::testing::ElementsAre("[rank 1] LOCAL_RANK=1", HasSubstr(" --device cuda")));
}

TEST_F(LaunchRunTest, AFailureIsFoundInTheRecorder) {
  const std::string pid = folder_ + "/pid1";  // rank 0 ends after the launcher has noticed rank 1's end
  Tell(0, "await=" + pid + " await_end=" + pid + " exit=10");
  Tell(1, "pid=" + pid + " recorder=" + launch_.run_dir + ":0 kill=9");
  const Outcome outcome = Launch();
  EXPECT_EQ(outcome.exit_code, 10);
  ASSERT_TRUE(outcome.failure.has_value());
  EXPECT_EQ(outcome.failure->rank, 1);
  const nlohmann::json json = nlohmann::json::parse(File("outcome.json"));
  EXPECT_EQ(json["host"], "node17");
  EXPECT_EQ(json["instruction"], "step 7 > language.layers.3 > linear x -> y");
  EXPECT_EQ(json["recipe_line"], "toy.yaml:3:1");
  EXPECT_THAT(File("logs/launch.log"), HasSubstr("rank 1 ended by signal 9"));
}

TEST_F(LaunchRunTest, TheLastLinesOfTheRankThatFailedAreInTheOutcome) {
  Tell(0, "say=other");
  Tell(1, "say=one err=two exit=12");
  const Outcome outcome = Launch();
  EXPECT_THAT(OutcomeText(outcome), HasSubstr("  last lines of logs/rank0001.out:\n    one\n    two\n"));
  EXPECT_EQ(nlohmann::json::parse(File("outcome.json"))["last_lines"],
            nlohmann::json::parse(R"([{"file": "logs/rank0001.out", "lines": ["one", "two"]}])"));
}

TEST_F(LaunchRunTest, StartsAgainAsOftenAsTheRecipeSays) {
  plan_.checkpoint.every_steps = 5;
  plan_.launch.restarts = 1;
  Tell(1, "exit=10");
  EXPECT_EQ(Launch().exit_code, 10);
  EXPECT_THAT(errors_, Contains(HasSubstr("restart 1 of 1 in 1 s")));
  EXPECT_THAT(errors_, Contains("not started again: launch.restarts allows 1"));
  EXPECT_THAT(File("logs/launch.log"), HasSubstr("not started again: launch.restarts allows 1"));
  EXPECT_TRUE(std::filesystem::exists(launch_.run_dir + "/lives/2"));
  EXPECT_FALSE(std::filesystem::exists(launch_.run_dir + "/lives/3"));
}

TEST_F(LaunchRunTest, ARequestToEndBetweenTwoLivesIsHonouredAndWritten) {
  plan_.checkpoint.every_steps = 5;
  plan_.launch.restarts = 3;
  Tell(1, "exit=10");
  const auto outcome = LaunchRun({plan_}, launch_, starter_, [&](bool, std::string_view line) {
    if (line.find("restart 1 of 3") != line.npos) raise(SIGTERM);
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->exit_code, 128 + SIGTERM);
  EXPECT_EQ(nlohmann::json::parse(File("outcome.json"))["exit_code"], 128 + SIGTERM);
  EXPECT_FALSE(std::filesystem::exists(launch_.run_dir + "/lives/2"));
}

// An executor that was there for the first life.
TEST_F(LaunchRunTest, ALifeWhoseRanksCannotBeStartedHasAnOutcome) {
  plan_.checkpoint.every_steps = 5;
  for (const int life : {1, 2}) {
    launch_.executor = life == 1 ? InBuild("bin/fake_rank") : folder_ + "/missing";
    EXPECT_EQ(Launch().exit_code, life == 1 ? 0 : kExitUsage);
  }
  const nlohmann::json outcome = nlohmann::json::parse(File("outcome.json"));
  EXPECT_EQ(outcome["exit_code"], kExitUsage);
  EXPECT_THAT(outcome["cause"].get<std::string>(),
              HasSubstr("no rank could be started: cannot run " + folder_ + "/missing: No such file"));
  EXPECT_EQ(outcome["run_id"], nlohmann::json::parse(File("run.json"))["run_id"]);
  EXPECT_TRUE(std::filesystem::exists(launch_.run_dir + "/lives/1/outcome.json"));
}

// Another life would begin anew in an empty folder.
TEST_F(LaunchRunTest, ARunWhoseFolderIsMovedAwayEndsAndSaysSo) {
  plan_.checkpoint.every_steps = 5;
  plan_.launch.restarts = 3;
  const std::string pid = folder_ + "/pid1", go = folder_ + "/go";
  for (const bool between_lives : {false, true}) {
    std::filesystem::remove_all(folder_ + "/moved");
    const auto move = [&] { std::filesystem::rename(launch_.run_dir, folder_ + "/moved"); };
    Tell(1, between_lives ? "exit=10" : "pid=" + pid + " await=" + go + " exit=10");
    std::thread mover([&] {
      if (between_lives) return;
      EXPECT_TRUE(testing::Eventually([&] { return std::ifstream(pid).peek() != EOF; }));
      move();
      std::ofstream(go) << "go";
    });
    const auto outcome = LaunchRun({plan_}, launch_, starter_, [&](bool, std::string_view line) {
      if (between_lives && line.find("restart 1 of 3") != line.npos) move();
    });
    mover.join();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    EXPECT_EQ(outcome->exit_code, kExitStorage);
    EXPECT_THAT(outcome->cause,
                HasSubstr("the run directory is lost: " + launch_.run_dir + "/lives/1 is gone; before: "));
    EXPECT_FALSE(std::filesystem::exists(launch_.run_dir));
  }
}

// Nodes for two ranks, and after the first life for one.
class LosesANode : public LocalStarter {
 public:
  using LocalStarter::LocalStarter;
  int nodes() override { return lives_ == 0 ? 2 : 1; }
  absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override {
    ++lives_;
    return LocalStarter::Start(program);
  }

 private:
  int lives_ = 0;
};

TEST_F(LaunchRunTest, FallsBackToThePlanThatFitsTheNodesThatAreLeft) {
  plan_.checkpoint.every_steps = 5;
  plan_.launch.restarts = 3;
  plan_.cluster.gpus_per_node = 1;
  Plan smaller = plan_;
  smaller.world_size = 1;
  smaller.digest = PlanDigest(smaller);
  Tell(0, "env=WORLD_SIZE");
  Tell(1, "exit=10");
  LosesANode starter("127.0.0.1", "a key");
  const auto outcome = LaunchRun({plan_, smaller}, launch_, starter, [&](bool is_error, std::string_view line) {
    if (!is_error) output_.emplace_back(line);
  });
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->exit_code, 0);
  EXPECT_EQ(output_.back(), "WORLD_SIZE=1");
}

// A starter that must be asked to wait while no ranks run. Where a rank was takes long to tell: until it has been
// asked, or for so long that it never will.
class NeedsPauses : public LocalStarter {
 public:
  using LocalStarter::LocalStarter;
  std::function<void()> gathers = [] {};  // called before it is told where a rank was
  bool waited_in_vain() const { return in_vain_; }

  absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override {
    absl::StatusOr<std::unique_ptr<Processes>> ranks = LocalStarter::Start(program);
    if (!ranks.ok()) return ranks;
    pauses_ = 0;
    return std::make_unique<Ranks>(*std::move(ranks), *this);
  }
  int Pause(std::chrono::milliseconds time) override {
    ++pauses_;
    return LocalStarter::Pause(time);
  }

 private:
  class Ranks : public Processes {
   public:
    Ranks(std::unique_ptr<Processes> ranks, NeedsPauses& starter) : ranks_(std::move(ranks)), starter_(starter) {}
    int count() const override { return ranks_->count(); }
    void Signal(int number) override { ranks_->Signal(number); }
    std::vector<ProcessEvent> Wait(const std::optional<Clock::time_point>& until) override {
      return ranks_->Wait(until);
    }
    std::optional<RankPosition> Position(int rank) override {
      starter_.gathers();
      const auto end = Clock::now() + std::chrono::seconds(10);
      while (starter_.pauses_ < 2 && Clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (starter_.pauses_ < 2) starter_.in_vain_ = true;
      return ranks_->Position(rank);
    }

   private:
    const std::unique_ptr<Processes> ranks_;
    NeedsPauses& starter_;
  };

  std::atomic<int> pauses_ = 0;
  std::atomic<bool> in_vain_ = false;
};

TEST_F(LaunchRunTest, WhatTheRanksNeedIsKeptAliveWhileTheirOutcomeIsGathered) {
  plan_.checkpoint.every_steps = 5;
  plan_.launch.restarts = 1;
  Tell(1, "exit=10");
  NeedsPauses starter("127.0.0.1", "a key");
  const auto outcome = LaunchRun({plan_}, launch_, starter, [](bool, std::string_view) {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->exit_code, 10);
  EXPECT_TRUE(std::filesystem::exists(launch_.run_dir + "/lives/2"));
  EXPECT_FALSE(starter.waited_in_vain()) << "agents would have taken this head for lost";
}

TEST_F(LaunchRunTest, ASignalWhileTheOutcomeIsGatheredEndsTheRun) {
  plan_.checkpoint.every_steps = 5;
  plan_.launch.restarts = 1;
  Tell(1, "exit=10");
  NeedsPauses starter("127.0.0.1", "a key");
  std::once_flag once;
  starter.gathers = [&] { std::call_once(once, [] { kill(getpid(), SIGTERM); }); };
  const auto outcome = LaunchRun({plan_}, launch_, starter, [](bool, std::string_view) {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->exit_code, 128 + SIGTERM);
  EXPECT_FALSE(std::filesystem::exists(launch_.run_dir + "/lives/2"));
}

// Ranks may be far from the launcher, and be started by a program that has another environment.
TEST_F(LaunchRunTest, RanksGetTheTimeOutOfTheLauncher) {
  class Looks : public LocalStarter {
   public:
    using LocalStarter::LocalStarter;
    absl::StatusOr<std::unique_ptr<Processes>> Start(const RankProgram& program) override {
      variables = program.variables;
      return LocalStarter::Start(program);
    }
    Variables variables;
  };
  for (const bool set : {true, false}) {
    if (set) setenv("PLANWRIGHT_TIMEOUT_SECONDS", "17.5", 1);
    launch_.run_dir = folder_ + (set ? "/set" : "/unset");
    Looks starter("127.0.0.1", "a key");
    ASSERT_TRUE(LaunchRun({plan_}, launch_, starter, [](bool, std::string_view) {}).ok());
    unsetenv("PLANWRIGHT_TIMEOUT_SECONDS");
    EXPECT_EQ(starter.variables.contains("PLANWRIGHT_TIMEOUT_SECONDS"), set);
    if (set) {
      EXPECT_EQ(starter.variables["PLANWRIGHT_TIMEOUT_SECONDS"], "17.5");
    }
  }
}

TEST_F(LaunchRunTest, RanksOnGpusAreBoundToCores) {
  launch_.device = "cuda";
  for (int rank : {0, 1}) Tell(rank, "cores env=PLANWRIGHT_OWN_CORES");
  EXPECT_EQ(Launch().exit_code, 0);
  ASSERT_EQ(output_.size(), 2u);
  ASSERT_EQ(errors_.size(), 2u);
  testing::ExpectOwnCores(output_[0], errors_[0]);
  const bool bound = testing::CoresOfThisProcess().size() > 1;
  EXPECT_EQ(output_[1], std::string("PLANWRIGHT_OWN_CORES=") + (bound ? "1" : "(unset)"));
}

TEST_F(LaunchRunTest, RanksOnCpusMayRunOnAllCores) {
  launch_.device = "cpu";
  for (int rank : {0, 1}) Tell(rank, "cores env=PLANWRIGHT_OWN_CORES");
  EXPECT_EQ(Launch().exit_code, 0);
  ASSERT_EQ(output_.size(), 2u);
  ASSERT_EQ(errors_.size(), 2u);
  EXPECT_EQ(testing::CoresIn(output_[0]), testing::CoresOfThisProcess());
  EXPECT_EQ(testing::CoresIn(errors_[0]), testing::CoresOfThisProcess());
  EXPECT_EQ(output_[1], "PLANWRIGHT_OWN_CORES=(unset)");
}

TEST_F(LaunchRunTest, OutputThatCannotBeKeptIsStillShown) {
  std::filesystem::create_directories(launch_.run_dir + "/logs");
  std::filesystem::create_symlink("/dev/full", launch_.run_dir + "/logs/rank0001.out");
  Tell(1, "say=one say=two");
  EXPECT_EQ(Launch().exit_code, 0);
  EXPECT_THAT(errors_, ::testing::UnorderedElementsAre("[rank 1] one",
                                                       "[rank 1] what it prints is missing in " + launch_.run_dir +
                                                           "/logs/rank0001.out from here on: No space left on device",
                                                       "[rank 1] two"));
}

TEST_F(LaunchRunTest, AUsedRunDirectoryIsRefused) {
  Launch();
  const std::string outcome = File("outcome.json");
  const absl::StatusOr<Outcome> second = LaunchRun({plan_}, launch_, starter_, [](bool, std::string_view) {});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("already holds a run"));
  EXPECT_EQ(File("outcome.json"), outcome);
}

TEST_F(LaunchRunTest, OfManyWhoClaimAFolderAtOnceOneGetsIt) {
  std::atomic<int> claimed{0}, refused{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const absl::Status status = ClaimFile(folder_ + "/plan.json");
      ++(status.ok() ? claimed : refused);
      EXPECT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status.message();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(claimed, 1);
  EXPECT_EQ(refused, 15);
}

TEST_F(LaunchRunTest, ALongNameIsNoLongFolder) {
  plan_.name = std::string(5000, 'n');
  EXPECT_LT(std::filesystem::path(DefaultRunDirectory(plan_)).filename().string().size(), 200u);
  launch_.run_dir = folder_ + "/" + std::string(300, 'd');
  const absl::StatusOr<Outcome> outcome = LaunchRun({plan_}, launch_, starter_, [](bool, std::string_view) {});
  EXPECT_THAT(std::string(outcome.status().message()), HasSubstr("File name too long"));
}

// A rank whose libraries cannot be loaded: the launcher's table of exit statuses has no 127.
TEST_F(LaunchRunTest, ARankThatCannotBeLoadedSaysWhy) {
  const auto launch = [&](const std::string& body, const std::string& name) {
    launch_.executor = folder_ + "/" + name;
    launch_.run_dir = folder_ + "/run-" + name;
    std::ofstream(launch_.executor) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(launch_.executor, std::filesystem::perms::owner_all);
    return Launch();
  };
  const Outcome refused = launch(
      "echo 'x: error while loading shared libraries: l.so: failed to map segment from shared object' >&2\nexit 127",
      "a");
  EXPECT_EQ(refused.exit_code, 19);
  EXPECT_THAT(refused.cause, HasSubstr("could not be loaded: host memory was refused"));
  const Outcome aborted =
      launch("echo \"terminate called after throwing an instance of 'std::bad_alloc'\" >&2\nkill -ABRT $$", "b");
  EXPECT_EQ(aborted.exit_code, 19);
  const Outcome missing =
      launch("echo 'x: error while loading shared libraries: l.so: cannot open' >&2\nexit 127", "c");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.cause, HasSubstr("its program ended with exit status 127"));
  EXPECT_EQ(launch("kill -ABRT $$", "d").exit_code, 10) << "a rank that was killed";
}

// A target that is no plain file, such as a device or a pipe, must not be replaced.
TEST_F(LaunchRunTest, APipeIsWrittenIntoAndALinkStays) {
  const std::string pipe = folder_ + "/pipe", target = folder_ + "/target", link = folder_ + "/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = (std::stringstream() << std::ifstream(pipe).rdbuf()).str(); });
  EXPECT_TRUE(WriteNamedFile(pipe, "a page").ok());
  reader.join();
  EXPECT_EQ(read, "a page");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  // Where nobody has named it, as in the place of a file of a run, nobody may read it.
  EXPECT_THAT(std::string(WriteFileAtomically(pipe, "a file").message()), HasSubstr("it is not a plain file"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));

  std::ofstream(target) << "old";
  std::filesystem::create_symlink("target", link);
  EXPECT_TRUE(WriteNamedFile(link, "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ((std::stringstream() << std::ifstream(target).rdbuf()).str(), "new");
  EXPECT_FALSE(WriteFileAtomically(folder_, "new").ok());
}

TEST_F(LaunchRunTest, ATimeOutThatIsNoneIsRefusedBeforeAnythingIsMade) {
  for (const char* seconds : {"", "soon", "0", "-1", "inf", "nan"}) {
    setenv("PLANWRIGHT_TIMEOUT_SECONDS", seconds, 1);
    const absl::StatusOr<Outcome> outcome = LaunchRun({plan_}, launch_, starter_, [](bool, std::string_view) {});
    EXPECT_EQ(outcome.status().code(), absl::StatusCode::kInvalidArgument) << seconds;
    EXPECT_FALSE(std::filesystem::exists(launch_.run_dir));
  }
  setenv("PLANWRIGHT_TIMEOUT_SECONDS", "0.5", 1);
  EXPECT_EQ(Launch().exit_code, 0);
  unsetenv("PLANWRIGHT_TIMEOUT_SECONDS");
}

TEST_F(LaunchRunTest, AMissingExecutorIsNamed) {
  launch_.executor = folder_ + "/executor";
  EXPECT_THAT(std::string(CheckRun(plan_, launch_).message()), HasSubstr("there is no executor program at " + folder_));
}

}  // namespace
}  // namespace planwright
