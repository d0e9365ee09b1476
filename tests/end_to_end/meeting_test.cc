// Whole runs whose ranks meet under bad conditions: strangers flood the port, a host does not exist, another run is
// there. And without a launcher.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/wire/rendezvous/store_protocol.h"
#include "planner/wire/rendezvous/store_server.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"
#include "tests/wire/rendezvous/sockets.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kBin = InBuild("bin/");
const std::string kRecipe = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

class MeetingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_meeting_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string RunDir() const { return folder_ + "/run"; }

  // Two ranks: the encoder and the language model.
  Started LaunchTiny(int steps, const std::vector<std::string>& words = {}) {
    std::vector<std::string> arguments = {std::string(kBin) + "plan", "launch", kRecipe,
                                          "modules.language.placement.first_rank=1"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    for (const std::string& word : {std::string("--local"), std::string("--yes"), std::string("--run-dir"), RunDir(),
                                    std::string("--steps"), std::to_string(steps)})
      arguments.push_back(word);
    return StartProgram(arguments, {}, folder_ + "/output");
  }

  // One rank of two, started by hand.
  Started StartRank(int rank, const std::vector<std::string>& environment) {
    const std::string plan = folder_ + "/plan.json";
    if (!fs::exists(plan)) {
      const Started compile = StartProgram(
          {std::string(kBin) + "plan", "compile", kRecipe, "modules.language.placement.first_rank=1", "-o", plan}, {},
          folder_ + "/compile");
      EXPECT_EQ(WaitFor(compile.pid, kPatience), 0) << ReadAll(compile.output);
      fs::create_directories(RunDir());
    }
    std::vector<std::string> all = {"RANK=" + std::to_string(rank), "WORLD_SIZE=2", "LOCAL_RANK=0",
                                    "LOCAL_WORLD_SIZE=2"};
    all.insert(all.end(), environment.begin(), environment.end());
    return StartProgram({std::string(kBin) + "executor", "--plan", plan, "--run-dir", RunDir(), "--steps", "2"}, all,
                        folder_ + "/rank" + std::to_string(rank));
  }

  // A variable of a rank, and its process; waits for one to start.
  std::string VariableOfARank(const std::string& name, pid_t* process = nullptr) {
    std::string value;
    Eventually([&] {
      for (pid_t pid : ProcessesWith(RunDir())) {
        const std::string environment = std::string(1, '\0') + ReadAll("/proc/" + std::to_string(pid) + "/environ");
        const size_t at = environment.find(std::string(1, '\0') + name + "=");
        if (at == std::string::npos) continue;
        const size_t begin = at + name.size() + 2;
        value = environment.substr(begin, environment.find('\0', begin) - begin);
        if (process != nullptr) *process = pid;
        return true;
      }
      return false;
    });
    return value;
  }

  std::string folder_;
};

TEST_F(MeetingTest, ARunWhosePortIsFloodedIsTheRunThatItWas) {
  const Started quiet = LaunchTiny(6);
  ASSERT_EQ(WaitFor(quiet.pid, kPatience), 0) << ReadAll(quiet.output);
  const auto losses = [&] {
    std::string found;
    std::istringstream lines(ReadAll(RunDir() + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const auto json = nlohmann::json::parse(line);
      found += json.at("loss").dump() + " ";
    }
    return found;
  };
  const std::string expected = losses();
  fs::remove_all(RunDir());

  const Started launch = LaunchTiny(6);
  pid_t rank = -1;
  const std::string port = VariableOfARank("MASTER_PORT", &rank);
  ASSERT_FALSE(port.empty());
  kill(rank, SIGSTOP);  // until the flood is there
  std::atomic<bool> ends{false};
  std::atomic<int> came{0};
  std::thread flood([&] {
    std::mt19937 random(3);
    std::vector<Stranger> idle;
    while (!ends) {
      Stranger stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const SocketAddress there = *SocketAddress::Parse("127.0.0.1", std::stoi(port));
      if (connect(stranger.socket(), there.pointer(), there.size()) != 0) break;  // the run is over
      std::string bytes(random() % 80, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      stranger.Send(random() % 2 == 0 ? bytes : std::string(kStorePurpose.client_magic) + bytes);
      idle.push_back(std::move(stranger));
      if (idle.size() > 2000) idle.clear();
      ++came;
    }
  });
  EXPECT_TRUE(Eventually([&] { return came > 3000; }));
  kill(rank, SIGCONT);
  const std::optional<int> status = WaitFor(launch.pid, kPatience);
  ends = true;
  flood.join();
  EXPECT_EQ(status, 0) << ReadAll(launch.output);
  EXPECT_EQ(losses(), expected);
}

// The secret is in the environment of the ranks and in no file and no line of output.
TEST_F(MeetingTest, TheSecretIsWrittenNowhere) {
  const Started launch =
      LaunchTiny(100000, {"budget.train_samples=800000", "budget.learning_rate.decay_samples=800000"});
  const std::string secret = VariableOfARank("PLANWRIGHT_SECRET");
  EXPECT_EQ(secret.size(), 64u);
  EXPECT_TRUE(Eventually([&] { return !ReadAll(RunDir() + "/metrics.jsonl").empty(); }));
  kill(launch.pid, SIGINT);
  EXPECT_EQ(WaitFor(launch.pid, kPatience), 128 + SIGINT);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    EXPECT_EQ(ReadAll(entry.path()).find(secret), std::string::npos) << entry.path();
  }
  EXPECT_GT(files, 3);
}

TEST_F(MeetingTest, TheInterfaceOfTheRecipe) {
  const Started launch = LaunchTiny(2, {"launch.interface=lo"});
  EXPECT_EQ(WaitFor(launch.pid, kPatience), 0) << ReadAll(launch.output);
  fs::remove_all(RunDir());
  const Started wrong = LaunchTiny(2, {"launch.interface=nosuch0"});
  EXPECT_EQ(WaitFor(wrong.pid, kPatience), kExitUsage);
  EXPECT_THAT(ReadAll(wrong.output), HasSubstr("launch.interface: there is no network interface 'nosuch0'"));
  EXPECT_FALSE(fs::exists(RunDir()));
}

// A port that was free a moment ago.
std::string FreePort() { return std::to_string(StartServer()->port()); }

TEST_F(MeetingTest, RanksThatAreStartedByHandMeetAtRank0) {
  const std::string port = FreePort();
  std::vector<Started> ranks;
  for (int rank : {1, 0}) ranks.push_back(StartRank(rank, {"MASTER_ADDR=localhost", "MASTER_PORT=" + port}));
  for (const Started& rank : ranks) EXPECT_EQ(WaitFor(rank.pid, kPatience), 0) << ReadAll(rank.output);
}

// One line, for people, with exit status 10.
TEST_F(MeetingTest, AHostThatIsNotThereIsOneLine) {
  struct Case {
    const char* address;
    std::string port;
    const char* message;
  };
  // A socket that listens and accepts nobody.
  const Stranger silent(OpenTcpSocket(AF_INET));
  const SocketAddress any = *SocketAddress::Parse("127.0.0.1", 0);
  ASSERT_EQ(bind(silent.socket(), any.pointer(), any.size()), 0);
  ASSERT_EQ(listen(silent.socket(), 16), 0);
  const std::string silent_port = std::to_string(SocketAddress::OfThisEnd(silent.socket()).port());
  for (const Case& one :
       {Case{"no-such-host.invalid", "29500", "the host 'no-such-host.invalid' is not found"},
        Case{"127.0.0.1", FreePort(), "refused"}, Case{"127.0.0.1", silent_port, "does not answer"}}) {
    for (const char* secret : {"PLANWRIGHT_NONCE=a", "PLANWRIGHT_SECRET=s"}) {
      const Started rank = StartRank(1, {std::string("MASTER_ADDR=") + one.address, "MASTER_PORT=" + one.port,
                                         "PLANWRIGHT_TIMEOUT_SECONDS=0.5", secret});
      EXPECT_EQ(WaitFor(rank.pid, kPatience), kExitPeerLost);
      const std::string output = ReadAll(rank.output);
      EXPECT_THAT(output, HasSubstr(one.message));
      EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
    }
  }
}

TEST_F(MeetingTest, ARankThatMeetsAnotherRunSaysSo) {
  const auto server = StartServer("of another run");
  const Started rank = StartRank(
      1, {"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(server->port()), "PLANWRIGHT_SECRET=of this run"});
  EXPECT_EQ(WaitFor(rank.pid, kPatience), kExitPlanMismatch);
  EXPECT_THAT(ReadAll(rank.output), AllOf(HasSubstr("belongs to another run"), Not(HasSubstr("of this run"))));
}

}  // namespace
}  // namespace planwright::testing
