// Ranks that one process forks are as those that the launcher starts one by one (supervise_test.cc).
#include "planner/run/launch/rank_fork.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/wire/fork/become_rank.h"
#include "planner/wire/fork/end_signal.h"
#include "planner/wire/fork/fork_request.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"
#include "tests/support/supervise_commands.h"

namespace planwright {
namespace {

using namespace std::chrono_literals;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::kPatience;
using ::testing::UnorderedElementsAre;

const SupervisionTimes kWithoutHaste = {.settle = 1ms, .grace = kPatience};

class RankForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "forkXXXXXX";
    folder_ = mkdtemp(pattern.data());
    // Threads of tests inherit it. One that has SIGCHLD unblocked may get what the launcher waits for.
    sigemptyset(&child_);
    sigaddset(&child_, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_, nullptr);
  }
  void TearDown() override {
    sigprocmask(SIG_UNBLOCK, &child_, nullptr);
    std::filesystem::remove_all(folder_);
  }

  std::string Pid(int rank) const { return folder_ + "/pid" + std::to_string(rank); }
  static bool HasText(const std::string& file) { return std::ifstream(file).peek() != EOF; }
  static int NumberIn(const std::string& file) {
    int number = -1;
    std::ifstream(file) >> number;
    return number;
  }

  // The commands of ranks that do what the words of each say (fake_rank.cc).
  std::vector<Command> Ranks(const std::vector<std::string>& words, std::vector<std::string> program = {}) const {
    if (program.empty()) program = {InBuild("bin/fake_rank"), "a", "b"};
    std::vector<Command> commands;
    for (size_t rank = 0; rank < words.size(); ++rank) {
      Command command = {.arguments = program, .environment = {"PATH=/bin", "RANK=" + std::to_string(rank)}};
      for (size_t i = 0; i < words.size(); ++i)
        command.environment.push_back("FAKE_RANK_" + std::to_string(i) + "=pid=" + Pid(static_cast<int>(i)) + " " +
                                      words[i]);
      commands.push_back(std::move(command));
    }
    return commands;
  }
  Supervision Run(const std::vector<Command>& commands, const SupervisionTimes& times = kWithoutHaste) {
    const auto keep = [&](int child, bool is_error, std::string_view line) {
      lines_.push_back(std::to_string(child) + (is_error ? "! " : ": ") + std::string(line));
    };
    absl::StatusOr<Supervision> result = testing::SuperviseCommands(commands, keep, times, true);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : Supervision{};
  }
  // How each rank ended: its exit status, or its signal below zero.
  static std::map<int, int> EndsOf(const Supervision& result) {
    std::map<int, int> ends;
    for (const ProcessEnd& end : result.ends) ends[end.child] = end.signal != 0 ? -end.signal : end.exit_status;
    return ends;
  }
  static void ExpectNoChildren() { EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left"; }

  std::string folder_;
  sigset_t child_;
  std::vector<std::string> lines_;
};

TEST_F(RankForkTest, EachRankHasItsNumbersItsPipesAndItsEnd) {
  const Supervision result = Run(Ranks({"say=zero env=RANK env=LOCAL_RANK", "err=one env=RANK env=LOCAL_RANK",
                                        "arguments env=PLANWRIGHT_FORK_RANKS env=PATH"}));
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, 0), std::pair(1, 0), std::pair(2, 0)));
  EXPECT_THAT(lines_,
              UnorderedElementsAre("0: zero", "0: RANK=0", "0: LOCAL_RANK=0", "1! one", "1: RANK=1", "1: LOCAL_RANK=1",
                                   "2:  a b", "2: PLANWRIGHT_FORK_RANKS=(unset)", "2: PATH=/bin"));
  ExpectNoChildren();
}

TEST_F(RankForkTest, RanksOfAProgramWithThreadsAreAsAllOthers) {
  std::vector<Command> commands = Ranks({"say=zero env=RANK env=LOCAL_RANK", "arguments env=PLANWRIGHT_FORK_RANKS",
                                         "await=" + Pid(0) + " env=RANK exit=3"});
  for (Command& command : commands) command.environment.push_back("FAKE_LOADING=thread");
  EXPECT_THAT(EndsOf(Run(commands, {.settle = kPatience})),
              UnorderedElementsAre(std::pair(0, 0), std::pair(1, 0), std::pair(2, 3)));
  EXPECT_THAT(lines_, UnorderedElementsAre("0: zero", "0: RANK=0", "0: LOCAL_RANK=0", "1:  a b",
                                           "1: PLANWRIGHT_FORK_RANKS=(unset)", "2: RANK=2"));
  ExpectNoChildren();
}

TEST_F(RankForkTest, RanksThatWereNotAskedForAreNotBelieved) {
  std::vector<Command> commands = Ranks({"exit=3", "await=" + Pid(0)});
  for (Command& command : commands) command.environment.push_back("FAKE_LOADING=lie");
  EXPECT_THAT(EndsOf(Run(commands, {.settle = kPatience})), UnorderedElementsAre(std::pair(0, 3), std::pair(1, 0)));
  ExpectNoChildren();
}

TEST_F(RankForkTest, ManyShortRunsAllEnd) {
  for (int i = 0; i < 100; ++i) {
    const Supervision result = Run(Ranks({"", "exit=3", "kill=9", ""}), {.settle = kPatience});
    ASSERT_THAT(EndsOf(result),
                UnorderedElementsAre(std::pair(0, 0), std::pair(1, 3), std::pair(2, -SIGKILL), std::pair(3, 0)));
  }
  ExpectNoChildren();
}

TEST_F(RankForkTest, RanksAreChildrenOfTheLauncherInGroupsOfTheirOwn) {
  const pid_t own = getpid();
  std::thread look([&] {
    for (int rank : {0, 1}) {
      ASSERT_TRUE(Eventually([&] { return HasText(Pid(rank)); }));
      const int pid = NumberIn(Pid(rank));
      ASSERT_GT(pid, 1);
      EXPECT_EQ(getpgid(pid), pid);
      std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
      std::string id, name, state;
      int parent = 0;
      stat >> id >> name >> state >> parent;
      EXPECT_EQ(parent, own);
    }
    if (const int pid = NumberIn(Pid(1)); pid > 1) kill(pid, SIGKILL);
  });
  const Supervision result = Run(Ranks({"sleep", "sleep"}));
  look.join();
  EXPECT_EQ(result.cause->child, 1);
  EXPECT_EQ(result.cause->signal, SIGKILL);
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, -kEndSignal), std::pair(1, -SIGKILL)));
  ExpectNoChildren();
}

TEST_F(RankForkTest, RanksDieWithTheirLauncher) {
  const std::vector<Command> commands = Ranks({"sleep", "sleep"});
  const int launcher = fork();
  if (launcher == 0) {
    (void)testing::SuperviseCommands(
        commands, [](int, bool, std::string_view) {}, {}, true);
    _exit(0);
  }
  for (int rank : {0, 1}) EXPECT_TRUE(Eventually([&] { return HasText(Pid(rank)); }));
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  for (int rank : {0, 1}) {
    EXPECT_TRUE(Eventually([&] {
      std::string id, name, state;
      std::ifstream("/proc/" + std::to_string(NumberIn(Pid(rank))) + "/stat") >> id >> name >> state;
      return state.empty() || state == "Z";  // a zombie without parent is reaped by init
    }));
  }
}

TEST_F(RankForkTest, ARankThatStopsAtOnceIsSeen) {
  const Supervision result = Run(Ranks({"stop", "sleep"}), {.grace = kPatience, .stopped = 1ms});
  EXPECT_EQ(result.stopped, 0);
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, -kEndSignal), std::pair(1, -kEndSignal)));
}

// What happens to the process that loads the program happens to all its ranks.
TEST_F(RankForkTest, AProgramThatCannotBeLoadedFailsAllRanks) {
  const Supervision result = Run(Ranks({"", ""}, {"/bin/sh", "-c", "echo 'no such library' >&2; exit 127"}));
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, 127), std::pair(1, 127)));
  EXPECT_THAT(lines_, UnorderedElementsAre("0! no such library"));
  ExpectNoChildren();
}

TEST_F(RankForkTest, AProgramThatForksNoRanksIsAnError) {
  const Supervision result = Run(Ranks({"", ""}, {"/bin/true"}));
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, kExitInternal), std::pair(1, kExitInternal)));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_THAT(lines_[0], HasSubstr("it is no executor of Planwright"));
}

TEST_F(RankForkTest, AnInterruptEndsAProgramThatIsStillLoading) {
  const std::string loading = folder_ + "/loading";
  std::thread interrupt([&, main = pthread_self()] {
    EXPECT_TRUE(Eventually([&] { return HasText(loading); }));
    pthread_kill(main, SIGTERM);
  });
  const Supervision result =
      Run(Ranks({"", ""}, {"/bin/sh", "-c", "echo begun > " + loading + "; while true; do sleep 1; done"}));
  interrupt.join();
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, -kEndSignal), std::pair(1, -kEndSignal)));
  ExpectNoChildren();
}

TEST_F(RankForkTest, AProgramThatIsStoppedWhileItLoadsIsSeen) {
  const Supervision result =
      Run(Ranks({"", ""}, {"/bin/sh", "-c", "kill -STOP $$"}), {.grace = kPatience, .stopped = 1ms});
  EXPECT_TRUE(result.stopped.has_value());
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, -kEndSignal), std::pair(1, -kEndSignal)));
}

// A signal that asks for a checkpoint may come before there is a rank. It waits until ranks listen for it.
TEST_F(RankForkTest, ASignalThatComesEarlyReachesTheRanks) {
  const std::string loading = folder_ + "/loading", go = folder_ + "/go";
  std::vector<Command> commands = Ranks({"on_usr1=17 unblock sleep", "on_usr1=18 unblock sleep"});
  for (Command& command : commands) command.environment.push_back("FAKE_LOADING=pid=" + loading + " await=" + go);
  for (Command& command : commands) command.holds_stop_signal = true;
  const auto processes = LocalProcesses::Start(commands, {0, 1}, "", true);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_TRUE(Eventually([&] { return HasText(loading); }));
  (*processes)->Signal(SIGUSR1);
  std::ofstream(go) << "go";
  const Supervision result = Supervise(**processes, [](int, bool, std::string_view) {}, {.settle = kPatience});
  EXPECT_THAT(EndsOf(result), UnorderedElementsAre(std::pair(0, 17), std::pair(1, 18)));
}

TEST_F(RankForkTest, ALauncherThatGivesUpLeavesNobody) {
  auto processes = LocalProcesses::Start(Ranks({"sleep", "sleep", "sleep"}), {0, 1, 2}, "", true);
  ASSERT_TRUE(processes.ok()) << processes.status();
  processes->reset();
  ExpectNoChildren();
}

TEST(ForkRequest, IsReadAsItWasWritten) {
  const ForkRequest request = {.launcher = 7, .tell = 5, .go = 6, .ranks = {{4, 0, 1, 2}, {5, 1, 8, 9}}};
  const absl::StatusOr<ForkRequest> read = ReadForkRequest(ForkRequestText(request));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ForkRequestText(*read), "7 5 6 4 0 1 2 5 1 8 9");
  for (const char* text : {"", "7", "7 5 6", "7 5 6 4 0 1", "7 5 6 4 0 1 x", "7 5 6 4 0 1 -2", "7 5 6 4 0 1 2 "})
    EXPECT_EQ(ReadForkRequest(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
}

TEST(BecomeRank, IsNothingForOneRank) { EXPECT_TRUE(BecomeRank().ok()); }

}  // namespace
}  // namespace planwright
