#include "planner/run/launch/supervise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/run/launch/program_output.h"
#include "planner/wire/fork/end_signal.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"
#include "tests/support/supervise_commands.h"

namespace planwright {
namespace {

using namespace std::chrono_literals;
using testing::Eventually;
using testing::kPatience;
using testing::SuperviseCommands;
using ::testing::UnorderedElementsAre;

// Times for tests: end the others at once after a test has seen that they are ready, or wait without limit if they are
// to end by themselves.
const SupervisionTimes kAtOnce = {.settle = 1ms, .grace = 1ms}, kSettleForEver = {.settle = kPatience},
                       kGraceForEver = {.settle = 1ms, .grace = kPatience};

class SuperviseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "superviseXXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Waits until the rank has written its id into a file, so it runs.
  std::string Pid(int rank) const { return folder_ + "/pid" + std::to_string(rank); }
  Command Rank(std::vector<std::string> words) {
    words.insert(words.begin(), {InBuild("bin/fake_rank"), "pid=" + Pid(ranks_++)});
    return {words, {"PATH=/bin"}};
  }
  Supervision Run(const std::vector<Command>& commands, const SupervisionTimes& times = {}) {
    absl::StatusOr<Supervision> result = SuperviseCommands(
        commands,
        [&](int child, bool is_error, std::string_view line) {
          lines_.push_back(std::to_string(child) + (is_error ? "! " : ": ") + std::string(line));
        },
        times);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : Supervision{};
  }
  // The signal of the supervisor that ended a rank; 0: it ended by itself.
  static int EndedBy(const Supervision& result, int rank) {
    const auto end =
        std::find_if(result.ends.begin(), result.ends.end(), [&](const ProcessEnd& e) { return e.child == rank; });
    return end != result.ends.end() && end->sent_by_us ? end->signal : 0;
  }
  static bool HasText(const std::string& file) { return std::ifstream(file).peek() != EOF; }
  // The state letter of /proc, such as "T"; empty if there is no such process. A zombie without parent counts as gone:
  // init reaps it later.
  static std::string StateOf(int pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string id, name, state;
    stat >> id >> name >> state;
    return state == "Z" ? "" : state;
  }
  // Every process that wrote a pid file is gone, and none of ours is left as a zombie.
  void ExpectAllGone() {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      int pid = 0;
      std::ifstream(entry.path()) >> pid;
      ASSERT_GT(pid, 1) << entry.path();
      EXPECT_TRUE(Eventually([&] { return StateOf(pid).empty(); })) << entry.path();
      ++files;
    }
    EXPECT_GE(files, ranks_);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  }

  void ExpectEndsTheRun(int number) {
    std::thread interrupt([&, main = pthread_self()] {
      EXPECT_TRUE(Eventually([&] { return HasText(Pid(0)); }));
      pthread_kill(main, number);
    });
    const Supervision result = Run({Rank({"sleep"})}, kGraceForEver);
    interrupt.join();
    EXPECT_EQ(result.interrupted_by, number);
    EXPECT_EQ(EndedBy(result, 0), kEndSignal);
    ExpectAllGone();
  }

  std::string folder_;
  int ranks_ = 0;
  std::vector<std::string> lines_;
};

TEST_F(SuperviseTest, AllEndWell) {
  const Supervision result =
      Run({Rank({"say=hello"}), Rank({"err=warning", "await=" + Pid(0), "await_end=" + Pid(0)})});
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(result.ends.size(), 2u);
  EXPECT_THAT(lines_, UnorderedElementsAre("0: hello", "1! warning"));
}

// A child's pipes can close shortly before waitpid() sees its end. The supervisor must not miss the end then; it once
// did, in one of some hundred launches.
TEST_F(SuperviseTest, ManyShortRunsAllEnd) {
  for (int i = 0; i < 200; ++i) {
    const Supervision result = Run({Rank({}), Rank({}), Rank({}), Rank({})});
    ASSERT_EQ(result.ends.size(), 4u);
  }
}

TEST_F(SuperviseTest, ARankKilledBySignalEndsTheOthers) {
  const Supervision result =
      Run({Rank({"sleep"}), Rank({"await=" + Pid(0), "await=" + Pid(2), "kill=9"}), Rank({"sleep"})}, kGraceForEver);
  ASSERT_TRUE(result.cause.has_value());
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->signal, SIGKILL);
  EXPECT_EQ(EndedBy(result, 0), kEndSignal);
  EXPECT_EQ(EndedBy(result, 2), kEndSignal);
  ExpectAllGone();
}

TEST_F(SuperviseTest, ARankThatIgnoresTheEndIsEnded) {
  const std::string grandchild = folder_ + "/grandchild";
  const Supervision result =
      Run({Rank({"ignore_end", "child=" + grandchild, "sleep"}), Rank({"await=" + grandchild, "exit=3"})}, kAtOnce);
  ASSERT_TRUE(result.cause.has_value());
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->exit_status, 3);
  EXPECT_EQ(EndedBy(result, 0), SIGKILL);
  ExpectAllGone();
}

// The default times bound how long a rank lives after the first failure. ./dev bench measures when all are gone.
TEST_F(SuperviseTest, EndingTakesLessThanTwoSecondsOfWaiting) {
  EXPECT_LT(SupervisionTimes().settle + SupervisionTimes().grace, 2s);
}

TEST_F(SuperviseTest, AStoppedRankIsEnded) {
  const Supervision result =
      Run({Rank({"kill=19"}), Rank({"await=" + Pid(0), "await_stop=" + Pid(0), "exit=12"})}, kGraceForEver);
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.stopped, 0);
  EXPECT_EQ(EndedBy(result, 0), kEndSignal);
  ExpectAllGone();
}

TEST_F(SuperviseTest, ARankThatStaysStoppedEndsAll) {
  const Supervision result =
      Run({Rank({"sleep"}), Rank({"await=" + Pid(0), "kill=19"})}, {.grace = kPatience, .stopped = 100ms});
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(result.stopped, 1);
  EXPECT_EQ(EndedBy(result, 0), kEndSignal);
  EXPECT_EQ(EndedBy(result, 1), kEndSignal);
  ExpectAllGone();
}

TEST_F(SuperviseTest, AStoppedRankThatGoesOnIsNoFailure) {
  std::thread waker([&] {
    int pid = 0;
    EXPECT_TRUE(Eventually([&] { return bool(std::ifstream(Pid(0)) >> pid) && StateOf(pid) == "T"; }));
    kill(pid, SIGCONT);
  });
  const Supervision result = Run({Rank({"stop", "say=on"})});
  waker.join();
  EXPECT_FALSE(result.stopped.has_value());
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(lines_, std::vector<std::string>{"0: on"});
}

TEST_F(SuperviseTest, TheCauseIsNotTheFollowerThatEndedFirst) {
  const Supervision result =
      Run({Rank({"exit=10"}), Rank({"await=" + Pid(0), "await_end=" + Pid(0), "kill=11"}), Rank({"exit=10"})},
          kSettleForEver);
  EXPECT_EQ(result.ends.front().exit_status, 10);
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->signal, SIGSEGV);
}

TEST_F(SuperviseTest, ACauseThatEndsOnlyWhenItIsToldIsStillFound) {
  const std::string ready = folder_ + "/ready";
  const Supervision result =
      Run({Rank({"await=" + ready, "exit=10"}), Rank({"on_end=70", "pid=" + ready, "sleep"})}, kGraceForEver);
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->exit_status, 70);
}

TEST_F(SuperviseTest, WithOnlyFollowersTheFirstIsTheCause) {
  const Supervision result = Run({Rank({"sleep"}), Rank({"exit=10"})});
  EXPECT_EQ(result.cause->child, 1);
}

TEST_F(SuperviseTest, AnInterruptIsPassedOnAndIsNoFailure) {
  const std::string ready = folder_ + "/ready";
  std::thread interrupt([&, main = pthread_self()] {
    EXPECT_TRUE(Eventually([&] { return HasText(Pid(0)) && HasText(ready); }));
    pthread_kill(main, SIGTERM);
  });
  const Supervision result = Run({Rank({"sleep"}), Rank({"ignore_end", "pid=" + ready, "sleep"})}, {.grace = 200ms});
  interrupt.join();
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  EXPECT_FALSE(result.cause.has_value());
  EXPECT_EQ(EndedBy(result, 1), SIGKILL);
  ExpectAllGone();
}

// SIGHUP of a closed terminal, and SIGQUIT of Ctrl-\.
TEST_F(SuperviseTest, AHangUpEndsTheRunLikeAnInterrupt) { ExpectEndsTheRun(SIGHUP); }
TEST_F(SuperviseTest, AQuitEndsTheRunLikeAnInterrupt) { ExpectEndsTheRun(SIGQUIT); }

TEST_F(SuperviseTest, AHangUpThatIsIgnoredStaysIgnored) {
  const auto before = signal(SIGHUP, SIG_IGN);
  std::thread hang_up([&, main = pthread_self()] {
    EXPECT_TRUE(Eventually([&] { return HasText(Pid(0)); }));
    pthread_kill(main, SIGHUP);
    pthread_kill(main, SIGTERM);
  });
  const Supervision result = Run({Rank({"sleep"})}, kGraceForEver);
  hang_up.join();
  signal(SIGHUP, before);
  EXPECT_EQ(result.interrupted_by, SIGTERM);
}

// A batch system announces the end of a job, and then brings it: a rank that saves goes on as long as it is let.
TEST_F(SuperviseTest, TheEndThatWasAnnouncedDoesNotKillWhoSaves) {
  const std::string go = folder_ + "/go";
  std::thread signals([&, main = pthread_self()] {
    EXPECT_TRUE(Eventually([&] { return HasText(Pid(0)); }));
    for (const int number : {SIGUSR1, SIGTERM, SIGUSR1}) pthread_kill(main, number);
    EXPECT_TRUE(Eventually([&] { return HasText(go); }));
    pthread_kill(main, SIGTERM);
  });
  std::vector<Command> ranks = {Rank({"sleep"}), Rank({"await=" + Pid(0), "on_usr1=75", "unblock", "sleep"})};
  ranks[0].holds_stop_signal = ranks[1].holds_stop_signal = true;
  // Once rank 1 has ended by itself, a second request kills the other.
  const absl::StatusOr<std::unique_ptr<LocalProcesses>> processes = LocalProcesses::Start(ranks, {0, 1}, "", false);
  ASSERT_TRUE(processes.ok()) << processes.status();
  std::thread looks([&] {
    int pid = 0;
    EXPECT_TRUE(Eventually([&] { return bool(std::ifstream(Pid(1)) >> pid) && pid > 0; }));
    EXPECT_TRUE(Eventually([&] { return StateOf(pid).empty(); }));
    std::ofstream(go) << "go";
  });
  std::vector<bool> told;
  const Supervision result = Supervise(**processes, [](int, bool, std::string_view) {},
                                       {.grace = kPatience,
                                        .save = kPatience,
                                        .until_they_stop = [] { return 1s; },
                                        .interrupted = [&](bool saves) { told.push_back(saves); }});
  signals.join(), looks.join();
  EXPECT_EQ(result.interrupted_by, SIGUSR1);
  EXPECT_EQ(told, std::vector<bool>{true}) << "the first signal alone";
  EXPECT_FALSE(result.cause.has_value());
  ASSERT_EQ(result.ends.size(), 2U);
  EXPECT_EQ(result.ends[0].exit_status, 75);
  EXPECT_EQ(result.ends[1].signal, SIGKILL);
}

// As a batch system ends a job: SIGTERM for all its processes.
TEST_F(SuperviseTest, WhatEndsAllProcessesOfAJobIsARequestToSave) {
  std::thread interrupt([&, main = pthread_self()] {
    for (const int rank : {0, 1}) {
      int pid = 0;
      EXPECT_TRUE(Eventually([&] { return bool(std::ifstream(Pid(rank)) >> pid) && pid > 1; }));
      kill(pid, SIGTERM);
    }
    pthread_kill(main, SIGTERM);
  });
  std::vector<Command> ranks = {Rank({"on_usr1=75", "unblock", "sleep"}), Rank({"on_usr1=75", "unblock", "sleep"})};
  for (Command& rank : ranks) rank.holds_stop_signal = rank.outlives_sigterm = true;
  const absl::StatusOr<Supervision> result =
      SuperviseCommands(ranks, [](int, bool, std::string_view) {}, {.grace = kPatience, .save = kPatience});
  interrupt.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->interrupted_by, SIGTERM);
  ASSERT_EQ(result->ends.size(), 2U);
  for (const ProcessEnd& end : result->ends) EXPECT_EQ(end.exit_status, 75) << "signal " << end.signal;
}

// A rank that saves for ever, in a job that is being ended.
class SavesForEver : public Processes {
 public:
  explicit SavesForEver(bool job_ends) {
    events_.push_back({.kind = ProcessEvent::Kind::kInterrupt, .signal = SIGTERM});
    if (job_ends) events_.push_back({.kind = ProcessEvent::Kind::kEndComes});
  }
  int count() const override { return 1; }
  void Signal(int number) override {
    if (number != SIGUSR1) events_.push_back({.kind = ProcessEvent::Kind::kEnded, .rank = 0, .signal = number});
  }
  std::vector<ProcessEvent> Wait(const std::optional<Clock::time_point>& until) override {
    if (events_.empty() && until) std::this_thread::sleep_until(*until);
    return std::exchange(events_, {});
  }
  std::optional<RankPosition> Position(int) override { return std::nullopt; }

 private:
  std::vector<ProcessEvent> events_;
};

TEST_F(SuperviseTest, AJobThatIsEndedTellsItBeforeItIsKilled) {
  for (const bool job_ends : {true, false}) {
    SavesForEver processes(job_ends);
    const auto time = [&](bool short_one) { return short_one ? 1ms : std::chrono::milliseconds(kPatience); };
    const Supervision result = Supervise(processes, [](int, bool, std::string_view) {},
                                         {.grace = kPatience, .save = time(!job_ends), .until_killed = time(job_ends)});
    EXPECT_EQ(result.out_of_time, job_ends);
    ASSERT_EQ(result.ends.size(), 1U);
    EXPECT_EQ(result.ends[0].signal, kEndSignal);
    EXPECT_EQ(result.interrupted_by, SIGTERM);
  }
}

// Held back by a tracer that never looks, as by a driver or a file system that the kernel waits for.
TEST_F(SuperviseTest, AProcessThatSigkillDoesNotEndIsLeftBehind) {
  const std::string held = folder_ + "/held";
  const std::vector<Command> ranks = {Rank({"sleep"}), Rank({"await=" + held, "exit=3"})};
  absl::StatusOr<std::unique_ptr<LocalProcesses>> processes = LocalProcesses::Start(ranks, {0, 1}, "", false);
  ASSERT_TRUE(processes.ok()) << processes.status();
  (*processes)->LeaveKilledAfter(100ms);
  int pid = 0, answer[2];
  ASSERT_TRUE(Eventually([&] { return bool(std::ifstream(Pid(0)) >> pid) && pid > 1; }));
  ASSERT_EQ(pipe(answer), 0);
  const int tracer = fork();
  if (tracer == 0) {
    const char holds = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 ? 'y' : 'n';
    if (write(answer[1], &holds, 1) == 1 && holds == 'y') pause();
    _exit(0);
  }
  char holds = 'n';
  ASSERT_EQ(read(answer[0], &holds, 1), 1);
  close(answer[0]), close(answer[1]);
  std::ofstream(held) << "yes";
  const auto keep = [&](int rank, bool is_error, std::string_view line) {
    lines_.push_back(std::to_string(rank) + (is_error ? "! " : ": ") + std::string(line));
  };
  const Supervision result = Supervise(**processes, keep, kAtOnce);
  processes->reset();  // does not wait for it either
  kill(tracer, SIGKILL);
  waitpid(tracer, nullptr, 0);
  if (holds == 'n') GTEST_SKIP() << "no process may trace another one here";
  EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  ASSERT_EQ(result.ends.size(), 2U);
  ASSERT_TRUE(result.cause.has_value());
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(EndedBy(result, 0), SIGKILL);
  EXPECT_THAT(lines_, ::testing::Contains(::testing::StartsWith("0! process " + std::to_string(pid) +
                                                                " does not end, though it was sent SIGKILL")));
}

// Ranks that start hold the request until they know what they do; then it ends them. What others end with follows.
TEST_F(SuperviseTest, ARequestToSaveEndsRanksThatStart) {
  std::thread interrupt([&, main = pthread_self()] {
    EXPECT_TRUE(Eventually([&] { return HasText(Pid(0)) && HasText(Pid(1)); }));
    pthread_kill(main, SIGTERM);
  });
  std::vector<Command> ranks = {Rank({"sleep"}), Rank({"await=" + Pid(0), "await_end=" + Pid(0), "exit=10"})};
  ranks[1].holds_stop_signal = true;
  const absl::StatusOr<Supervision> result =
      SuperviseCommands(ranks, [](int, bool, std::string_view) {}, {.settle = kPatience, .save = kPatience});
  interrupt.join();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ended_at_start());
  EXPECT_FALSE(result->cause.has_value()) << "rank 1 lost the other";
}

// As daemons and some shells leave it to what they start. The kernel then keeps no ends of children.
TEST_F(SuperviseTest, EndsAreSeenThoughSigchldIsIgnored) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  for (const bool forks : {false, true}) {
    const auto ignore = [&](int, bool, std::string_view) {};
    std::vector<Command> commands = {Rank({}), Rank({"exit=3"})};
    if (forks) commands.assign(2, {{InBuild("bin/fake_rank"), "fail_rank=1"}, {"PATH=/bin"}});
    for (size_t i = 0; forks && i < commands.size(); ++i)
      commands[i].environment.push_back("RANK=" + std::to_string(i));
    const absl::StatusOr<Supervision> result = SuperviseCommands(commands, ignore, kSettleForEver, forks);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->ends.size(), 2U);
    ASSERT_TRUE(result->cause.has_value());
    EXPECT_EQ(result->cause->exit_status, 3) << "forks: " << forks;
    signal(SIGCHLD, SIG_IGN);
  }
  EXPECT_EQ(*OutputOf({"/bin/echo", "hello"}), "hello\n");
  signal(SIGCHLD, SIG_IGN);
  EXPECT_FALSE(OutputOf({"/bin/false"}).ok());
  signal(SIGCHLD, before);
}

TEST_F(SuperviseTest, AnEndThatSomebodyElseHasTakenIsAnEnd) {
  const std::string go = folder_ + "/go";
  const absl::StatusOr<Supervision> result =
      SuperviseCommands({Rank({"say=on", "await=" + go})}, [&](int, bool is_error, std::string_view line) {
        lines_.emplace_back(line);
        if (is_error) return;
        int pid = 0;
        std::ifstream(Pid(0)) >> pid;
        std::ofstream(go) << "go";
        EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
      });
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->cause.has_value());
  EXPECT_EQ(result->cause->exit_status, kExitInternal);
  EXPECT_THAT(lines_, ::testing::ElementsAre("on", ::testing::HasSubstr("nobody knows how this process ended")));
}

TEST_F(SuperviseTest, AProgramThatCannotRunLeavesNobodyBehind) {
  absl::StatusOr<Supervision> result =
      SuperviseCommands({Rank({"sleep"}), {{folder_ + "/missing"}, {}}}, [](int, bool, std::string_view) {});
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(std::string(result.status().message()), ::testing::HasSubstr("missing: No such file"));
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_F(SuperviseTest, RanksDieWithTheirLauncher) {
  const Command rank = Rank({"sleep"});
  const int launcher = fork();
  if (launcher == 0) {
    (void)SuperviseCommands({rank}, [](int, bool, std::string_view) {});
    _exit(0);
  }
  EXPECT_TRUE(Eventually([&] { return HasText(Pid(0)); }));
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  ExpectAllGone();
}

}  // namespace
}  // namespace planwright
