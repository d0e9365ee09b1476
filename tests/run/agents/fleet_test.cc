// A head in this process, and agents as processes of their own.
#include "planner/run/agents/fleet.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "planner/base/files/exit_status.h"
#include "planner/run/agents/agent.h"
#include "planner/run/agents/wire.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/run/launch/supervise.h"
#include "planner/wire/connection/proven_client.h"
#include "planner/wire/connection/proven_server.h"
#include "planner/wire/fork/end_signal.h"
#include "tests/support/bound_cores.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"
#include "tests/support/still_log.h"
#include "tests/wire/connection/stranger.h"

namespace planwright {
namespace {

using namespace std::chrono_literals;
using testing::Eventually;
using ::testing::HasSubstr;
using testing::kPatience;

class FleetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fleetXXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(folder_ + "/logs");
    absl::StatusOr<std::unique_ptr<Fleet>> fleet =
        Fleet::Open({.file = folder_ + "/head.json", .silence = std::chrono::milliseconds(kPatience)});
    ASSERT_TRUE(fleet.ok()) << fleet.status();
    fleet_ = *std::move(fleet);
  }
  void TearDown() override {
    fleet_.reset();
    for (const int agent : agents_) {
      kill(agent, SIGKILL);
      waitpid(agent, nullptr, 0);
    }
    std::filesystem::remove_all(folder_);
  }

  // An agent as a process; its exit status is 0 if the head ended it.
  int StartAgent(int node) {
    const int agent = fork();
    if (agent == 0) _exit(RunAgent({.file = folder_ + "/head.json", .node = node}).ok() ? 0 : 1);
    agents_.push_back(agent);
    return agent;
  }
  // An agent of node 0 for which a file system stands still. Then it writes `go`.
  int StartAgentWithStillLog(const std::string& log, const std::string& go) {
    const int agent = fork();
    if (agent == 0) {
      std::thread([&] {
        if (testing::StillLog::MakeWriterWait(log)) std::ofstream(go) << "go";
      }).detach();
      _exit(RunAgent({.file = folder_ + "/head.json", .node = 0}).ok() ? 0 : 1);
    }
    agents_.push_back(agent);
    return agent;
  }
  int ExitOf(int agent) {
    int status = 0;
    waitpid(agent, &status, 0);
    agents_.erase(std::find(agents_.begin(), agents_.end(), agent));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Come(int count) {
    int signal = 0;
    const absl::Status came = fleet_->WaitForAgents(
        count, kPatience, [] { return std::string(); }, signal);
    ASSERT_TRUE(came.ok()) << came;
  }
  RankProgram Program(std::vector<std::string> words, int ranks = 4, int per_node = 2) {
    words.insert(words.begin(), InBuild("bin/fake_rank"));
    return {.run_dir = folder_,
            .arguments = words,
            .variables = {{"MASTER_ADDR", "here"}},
            .world_size = ranks,
            .ranks_per_node = per_node};
  }
  Supervision Run(const RankProgram& program, const SupervisionTimes& times = {}) {
    const absl::StatusOr<std::unique_ptr<Processes>> processes = fleet_->Start(program);
    EXPECT_TRUE(processes.ok()) << processes.status();
    if (!processes.ok()) return {};
    return Supervise(
        **processes,
        [&](int rank, bool, std::string_view line) {
          lines_.push_back(std::to_string(rank) + " " + std::string(line));
        },
        times);
  }
  // -1: the head is gone, which is only right if it may be.
  int Connect(bool may_be_gone = false) {
    std::ifstream file(folder_ + "/head.json");
    const auto head = nlohmann::json::parse(file);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(head["port"].get<int>()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    EXPECT_TRUE(may_be_gone) << strerror(errno);
    close(fd);
    return -1;
  }

  std::string folder_;
  std::unique_ptr<Fleet> fleet_;
  std::vector<int> agents_;
  std::vector<std::string> lines_;
};

TEST_F(FleetTest, OnlyTheOwnerReadsTheSecret) {
  struct stat about {};
  ASSERT_EQ(stat((folder_ + "/head.json").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(FleetTest, RanksRunOnTheirNodes) {
  for (int node : {1, 0}) StartAgent(node);
  Come(2);
  const Supervision result = Run(Program({"env=RANK", "env=LOCAL_RANK", "env=LOCAL_WORLD_SIZE", "env=MASTER_ADDR"}));
  EXPECT_EQ(result.ends.size(), 4u);
  EXPECT_FALSE(result.cause);
  EXPECT_THAT(lines_,
              ::testing::IsSupersetOf({"0 RANK=0", "0 LOCAL_RANK=0", "1 LOCAL_RANK=1", "2 RANK=2", "2 LOCAL_RANK=0",
                                       "3 LOCAL_RANK=1", "3 LOCAL_WORLD_SIZE=2", "3 MASTER_ADDR=here"}));
}

TEST_F(FleetTest, ANodesRanksAreForkedWhereTheProgramSaysSo) {
  for (int node : {1, 0}) StartAgent(node);
  Come(2);
  RankProgram program = Program({"env=RANK", "env=LOCAL_RANK", "env=PLANWRIGHT_FORK_RANKS"}, 3);
  program.forks = true;
  const Supervision result = Run(program);
  EXPECT_EQ(result.ends.size(), 3u);
  EXPECT_FALSE(result.cause);
  EXPECT_THAT(lines_, ::testing::IsSupersetOf({"0 RANK=0", "1 RANK=1", "1 LOCAL_RANK=1", "2 RANK=2", "2 LOCAL_RANK=0",
                                               "1 PLANWRIGHT_FORK_RANKS=(unset)"}));
}

TEST_F(FleetTest, RanksOnGpusAreBoundToCores) {
  StartAgent(0);
  Come(1);
  RankProgram program = Program({"cores"}, 2);
  program.gpus = true;
  EXPECT_FALSE(Run(program).cause);
  ASSERT_EQ(lines_.size(), 2u);
  testing::ExpectOwnCores(lines_[0], lines_[1]);
  lines_.clear();
  program.gpus = false;
  EXPECT_FALSE(Run(program).cause);
  ASSERT_EQ(lines_.size(), 2u);
  for (const std::string& line : lines_) EXPECT_EQ(testing::CoresIn(line), testing::CoresOfThisProcess());
}

TEST_F(FleetTest, AFailureOnOneNodeEndsAll) {
  for (int node : {0, 1}) StartAgent(node);
  Come(2);
  const Supervision result = Run(Program({"fail_rank=3", "sleep"}), {.settle = 1ms, .grace = kPatience});
  ASSERT_TRUE(result.cause);
  EXPECT_EQ(result.cause->child, 3);
  EXPECT_EQ(result.ends.size(), 4u);
}

TEST_F(FleetTest, ALostNodeIsTheCause) {
  const int first = StartAgent(0), second = StartAgent(1);
  Come(2);
  std::thread killer([&] {
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ + "/pid3"); }));
    kill(second, SIGKILL);
  });
  const Supervision result =
      Run(Program({"pid_of_rank=" + folder_ + "/pid", "sleep"}), {.settle = 1ms, .grace = kPatience});
  killer.join();
  ASSERT_TRUE(result.cause);
  EXPECT_EQ(result.cause->child, 2);
  EXPECT_THAT(result.cause->unreachable, HasSubstr("127.0.0.1"));
  EXPECT_EQ(fleet_->nodes(), 1);
  fleet_.reset();
  EXPECT_EQ(ExitOf(first), 0);
}

// As behind a cable that is cut: nothing comes, and no connection is closed.
TEST_F(FleetTest, ANodeThatFallsSilentIsTheCauseAndEndsItsRanksWhenItIsBack) {
  fleet_.reset();
  fleet_ = *Fleet::Open({.file = folder_ + "/head.json", .silence = 3s});
  const int agent = StartAgent(0);
  Come(1);
  int rank = 0;
  std::thread cut([&] {
    EXPECT_TRUE(Eventually([&] { return bool(std::ifstream(folder_ + "/pid0") >> rank); }));
    kill(agent, SIGSTOP);
  });
  const Supervision result = Run(Program({"pid_of_rank=" + folder_ + "/pid", "sleep"}, 1, 1), {.settle = 1ms});
  cut.join();
  ASSERT_TRUE(result.cause);
  EXPECT_THAT(result.cause->unreachable, HasSubstr("nothing was heard from it for 3 s"));
  EXPECT_EQ(kill(rank, 0), 0) << "nobody could end it";
  kill(agent, SIGCONT);
  EXPECT_EQ(ExitOf(agent), 1);
  EXPECT_TRUE(Eventually([&] { return kill(rank, 0) != 0; }));
}

// The same cut, seen from the other side.
TEST_F(FleetTest, AnAgentWhoseHeadFallsSilentEndsItsRanks) {
  fleet_.reset();
  fleet_ = *Fleet::Open({.file = folder_ + "/head.json", .silence = 3s});
  const int agent = StartAgent(0);
  Come(1);
  const auto ranks = fleet_->Start(Program({"pid_of_rank=" + folder_ + "/pid", "sleep"}, 1, 1));
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  int rank = 0;
  EXPECT_TRUE(Eventually([&] { return bool(std::ifstream(folder_ + "/pid0") >> rank); }));
  EXPECT_EQ(ExitOf(agent), 1);  // nobody calls the head, so it says nothing
  EXPECT_TRUE(Eventually([&] { return kill(rank, 0) != 0; }));
}

// A file system on which a node writes its ranks' logs stands still. Its agent is there as before: it tells what its
// ranks print, and no line is missing in the log afterwards.
TEST_F(FleetTest, AnAgentWhoseLogsStandStillIsNotSilent) {
  fleet_.reset();
  fleet_ = *Fleet::Open({.file = folder_ + "/head.json"});
  const std::string log = folder_ + "/logs/rank0000.out", go = folder_ + "/go", printed = folder_ + "/printed";
  testing::StillLog still(log);
  ASSERT_TRUE(still.made());
  const int agent = StartAgentWithStillLog(log, go);
  Come(1);
  // More than two pipes hold: that of the rank, and that in the place of its log.
  const std::string script = "await() { while [ ! -e $1 ]; do sleep 0.01; done; }\nif [ $RANK = 0 ]; then await " + go +
                             "; seq 50000; touch " + printed + "; else await " + printed + "; echo here; fi";
  const RankProgram program = {.run_dir = folder_,
                               .arguments = {"/bin/sh", "-c", script},
                               .variables = {},
                               .world_size = 2,
                               .ranks_per_node = 2};
  const absl::StatusOr<std::unique_ptr<Processes>> processes = fleet_->Start(program);
  ASSERT_TRUE(processes.ok()) << processes.status();
  std::future<std::string> read;
  std::string expected;
  const Supervision result = Supervise(**processes,
                                       [&](int rank, bool, std::string_view line) {
                                         if (rank == 0) expected.append(line).push_back('\n');
                                         if (rank == 1)
                                           read = std::async(std::launch::async, [&] { return still.Read(); });
                                       },
                                       {});
  EXPECT_FALSE(result.cause) << result.cause->unreachable;
  ASSERT_TRUE(read.valid()) << "nothing was heard of the other rank";
  fleet_.reset();
  EXPECT_EQ(ExitOf(agent), 0);
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 50000);
  EXPECT_EQ(read.get(), expected);
}

// The next life waits for the logs of the one before. A head in the place of the real one counts beats meanwhile.
TEST_F(FleetTest, AnAgentThatCannotStartItsRanksYetIsNotSilent) {
  fleet_.reset();
  struct Head : ProvenServer::User {
    void Proved(ProvenServer::Id id, const std::string&) override { agent = id; }
    std::string Take(ProvenServer::Id, std::string& in) override {
      return std::string(TakeMessages(in, messages).message());
    }
    void Closed(ProvenServer::Id, const std::string& why) override { closed = why; }
    ProvenServer::Id agent = 0;
    std::vector<nlohmann::json> messages;
    std::string closed;
  } head;
  const auto server = ProvenServer::Listen("127.0.0.1", 0,
                                           {.purpose = kAgentsPurpose,
                                            .secret = "secret",
                                            .patience = kPatience,
                                            .most_in = 2 * kLongestLine,
                                            .most_unsent = kLongestLine});
  ASSERT_TRUE(server.ok()) << server.status();
  std::ofstream(folder_ + "/head.json") << nlohmann::json{
      {"address", "127.0.0.1"}, {"port", (*server)->port()}, {"secret", "secret"}};
  const auto send = [&](const nlohmann::json& message) { (*server)->Send(head.agent, LineOf(message)); };
  // Waits for so many messages of a kind, and forgets all that came; false: one of another kind came before.
  const auto await = [&](const std::string& kind, int count, const std::string& not_before = "") {
    bool other = false;
    EXPECT_TRUE(Eventually([&] {
      pollfd readable = {(*server)->fd(), POLLIN, 0};
      poll(&readable, 1, 10);
      (*server)->Serve(head);
      for (const nlohmann::json& message : std::exchange(head.messages, {})) {
        count -= message["kind"] == kind ? 1 : 0;
        other |= message["kind"] == not_before;
      }
      return count <= 0 || !head.closed.empty();
    })) << kind;
    EXPECT_EQ(head.closed, "");
    return !other;
  };
  const std::string log = folder_ + "/logs/rank0000.out", go = folder_ + "/go";
  testing::StillLog still(log);
  ASSERT_TRUE(still.made());
  const int agent = StartAgentWithStillLog(log, go);
  await("hello", 1);
  send({{"kind", "welcome"}, {"silence", std::chrono::milliseconds(kPatience).count()}});
  const auto start = [&](const std::string& script) {
    nlohmann::json message = ProgramJson({.run_dir = folder_,
                                          .arguments = {"/bin/sh", "-c", script},
                                          .variables = {},
                                          .world_size = 1,
                                          .ranks_per_node = 1});
    message["kind"] = "start", message["node"] = 0, message["folder"] = folder_;
    send(message);
  };
  start("while [ ! -e " + go + " ]; do sleep 0.01; done; seq 50000");
  await("position", 1);  // the rank has ended
  start("echo again");
  EXPECT_TRUE(await("beat", 3, "started"));
  const auto read = std::async(std::launch::async, [&] { return still.Read(); });
  await("position", 1);
  send({{"kind", "end"}});
  EXPECT_EQ(ExitOf(agent), 0);
}

TEST_F(FleetTest, RanksDieWithTheirHead) {
  const int agent = StartAgent(0);
  Come(1);
  auto processes = fleet_->Start(Program({"pid_of_rank=" + folder_ + "/pid", "sleep"}, 2));
  ASSERT_TRUE(processes.ok()) << processes.status();
  EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ + "/pid1"); }));
  int pid = 0;
  EXPECT_TRUE(Eventually([&] { return bool(std::ifstream(folder_ + "/pid1") >> pid); }));
  // A head that is gone without a word: its sockets are closed and nothing is sent.
  for (int fd = 3; fd < 64; ++fd) {
    sockaddr_in other{};
    socklen_t size = sizeof other;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &size) == 0) shutdown(fd, SHUT_RDWR);
  }
  EXPECT_EQ(ExitOf(agent), 1);
  EXPECT_TRUE(Eventually([&] { return kill(pid, 0) != 0; }));
  processes->reset();
}

TEST_F(FleetTest, OneFleetRunsLifeAfterLife) {
  StartAgent(-1);
  StartAgent(-1);
  Come(2);
  for (int life = 0; life < 3; ++life) {
    lines_.clear();
    EXPECT_EQ(Run(Program({"env=RANK"})).ends.size(), 4u);
    EXPECT_EQ(lines_.size(), 4u);
  }
}

TEST_F(FleetTest, AProgramThatIsMissingIsNamed) {
  StartAgent(0);
  Come(1);
  RankProgram program = Program({}, 1, 1);
  program.arguments = {folder_ + "/missing"};
  const auto processes = fleet_->Start(program);
  ASSERT_FALSE(processes.ok());
  EXPECT_THAT(std::string(processes.status().message()), HasSubstr("missing: No such file"));
}

TEST_F(FleetTest, StrangersChangeNothing) {
  std::vector<int> strangers;
  for (const std::string text : {"", "GET / HTTP/1.1\r\n\r\n", "{\"kind\":\"hello\",\"nonce\":\"00\",\"proof\":\"\"}\n",
                                 "{\"kind\":\"hello\",\"nonce\":7,\"proof\":[]}\n", "[]\n", "\xff\xfe\n"}) {
    strangers.push_back(Connect());
    EXPECT_EQ(send(strangers.back(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  const std::string flood(1 << 20, 'x');
  strangers.push_back(Connect());
  std::thread sender([&] {
    while (send(strangers.back(), flood.data(), flood.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  StartAgent(0);
  Come(1);
  EXPECT_EQ(Run(Program({"env=RANK"}, 2)).ends.size(), 2u);
  sender.join();
  for (const int fd : strangers) close(fd);
}

// Each sends messages as fast as it can, and never proves that it knows the secret: it is closed, having sent no more
// than the kernel holds. Agents come and run ranks meanwhile.
TEST_F(FleetTest, EndlessStrangersAreClosedAndHoldUpNobody) {
  const std::string hello = std::string(kAgentsPurpose.client_magic) + std::string(kNonceBytes, 'n');
  std::vector<std::thread> strangers;
  std::atomic<bool> ended = false;
  std::atomic<size_t> came = 0, most = 0;
  for (const std::string& first : {std::string(), std::string(), hello}) {
    strangers.emplace_back([&, first] {
      do {
        // From its second time on the head may be gone: it may go between this and what the loop asks.
        const int fd = Connect(/*may_be_gone=*/came >= 3);
        if (fd < 0) break;
        const testing::Stranger stranger(fd);
        stranger.Send(first);
        const size_t sent = testing::SendEndlessly(stranger, "{\"kind\":\"x\"}\n");
        if (sent > most) most = sent;
        ++came;
      } while (!ended);
    });
  }
  StartAgent(0);
  Come(1);
  EXPECT_EQ(Run(Program({"env=RANK"}, 2)).ends.size(), 2u);
  ended = true;
  while (came < strangers.size()) fleet_->Pause(1ms);
  fleet_.reset();  // also ends who came last
  for (std::thread& stranger : strangers) stranger.join();
  EXPECT_LT(most, testing::kWhatTheKernelHolds);
}

// An agent, which knows the secret, may not make its head remember without end either.
TEST_F(FleetTest, AnAgentThatFloodsIsHeldUpAndOthersAreNot) {
  std::ifstream file(folder_ + "/head.json");
  const auto head = nlohmann::json::parse(file);
  std::atomic<bool> ended = false;
  std::atomic<size_t> sent = 0;
  std::thread flood([&] {
    auto stream = ConnectOnce("127.0.0.1", head["port"].get<int>(), kAgentsPurpose, head["secret"], kPatience);
    ASSERT_TRUE(stream.ok()) << stream.status();
    stream->Add("{\"kind\":\"hello\",\"node\":1,\"host\":\"bad\\u001b[31m\"}\n");
    const std::string line(size_t{1} << 20, '[');  // a line that has no end
    while (!ended && stream->Flush().ok()) {
      sent += stream->unsent() == 0 ? line.size() : 0;
      if (stream->unsent() == 0) stream->Add(line);
      pollfd writable = {stream->fd(), POLLOUT, 0};
      poll(&writable, 1, 10);
    }
  });
  StartAgent(0);
  Come(1);
  EXPECT_EQ(Run(Program({"env=RANK"}, 2)).ends.size(), 2u);
  EXPECT_TRUE(Eventually([&] {
    fleet_->Pause(1ms);
    return fleet_->nodes() == 1;
  })) << "after "
      << sent << " bytes of one line";
  ended = true;
  flood.join();
}

// The store's secret is made at both ends; what goes over the connection does not have it.
TEST_F(FleetTest, TheSecretOfTheStoreIsMadeAtBothEnds) {
  StartAgent(0);
  Come(1);
  RankProgram program = Program({"env=PLANWRIGHT_SECRET"}, 1, 1);
  program.variables["PLANWRIGHT_NONCE"] = "this life";
  Run(program);
  EXPECT_EQ(lines_, std::vector<std::string>{"0 PLANWRIGHT_SECRET=" + SecretOfLife(fleet_->key(), "this life")});
  EXPECT_NE(SecretOfLife(fleet_->key(), "this life"), SecretOfLife(fleet_->key(), "that life"));
}

// A line of a rank may have any bytes and any length; its agent stays.
TEST_F(FleetTest, AnyLineOfARankArrives) {
  StartAgent(0);
  Come(1);
  const RankProgram program = {
      .run_dir = folder_,
      .arguments = {"/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' '\\001'; echo; echo done"},
      .variables = {},
      .world_size = 1,
      .ranks_per_node = 1};
  const Supervision result = Run(program);
  EXPECT_FALSE(result.cause);
  size_t bytes = 0;
  for (const std::string& line : lines_) bytes += line.size() - 2;
  EXPECT_EQ(bytes, 3000000u + 4);
  EXPECT_EQ(lines_.back(), "0 done");
}

TEST_F(FleetTest, NodesThatDoNotComeAreTold) {
  StartAgent(0);
  Come(1);
  int signal = 0;
  const absl::Status came = fleet_->WaitForAgents(
      2, kPatience, [] { return std::string("srun ended"); }, signal);
  EXPECT_THAT(std::string(came.message()), ::testing::AllOf(HasSubstr("of 2 nodes"), HasSubstr("srun ended")));
}

TEST_F(FleetTest, AgentsStayThroughALongPause) {
  fleet_.reset();
  fleet_ = *Fleet::Open({.file = folder_ + "/head.json", .silence = 2s});
  StartAgent(0);
  Come(1);
  EXPECT_EQ(fleet_->Pause(5s), 0);
  EXPECT_EQ(fleet_->nodes(), 1);
  const HeldSignals held;
  raise(SIGTERM);
  EXPECT_EQ(fleet_->Pause(5s), SIGTERM);
}

TEST_F(FleetTest, AHeadDoesNotTakeTheAgentsOfAnother) {
  const auto other = Fleet::Open({.file = folder_ + "/head.json"});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kAlreadyExists) << other.status();
  StartAgent(0);
  Come(1);
}

// As where the run directory is on a disk of the first node.
TEST_F(FleetTest, ANodeThatDoesNotShareTheFolderSaysSo) {
  const absl::Status joined = RunAgent({.file = folder_ + "/elsewhere/head.json", .file_is_written = true});
  EXPECT_EQ(joined.code(), absl::StatusCode::kFailedPrecondition) << joined;
  EXPECT_THAT(std::string(joined.message()), HasSubstr("does not see " + folder_ + "/elsewhere, where the head"));
}

TEST_F(FleetTest, ASecondAgentOfANodeIsTold) {
  StartAgent(0);
  Come(1);
  const int second = StartAgent(0);
  std::thread head([&] { fleet_->Pause(2s); });
  EXPECT_EQ(ExitOf(second), 1);
  head.join();
}

// A request to end that reaches head and agents alike is one request, in whatever order it comes.
TEST_F(FleetTest, ASignalToHeadAndAgentInterruptsTheRunOnce) {
  const int agent = StartAgent(0);
  Come(1);
  HeldSignals held;  // also for the thread
  std::thread sender([&] {
    EXPECT_TRUE(Eventually(
        [&] { return std::filesystem::exists(folder_ + "/pid0") && std::filesystem::exists(folder_ + "/pid1"); }));
    kill(agent, SIGTERM);
    kill(getpid(), SIGTERM);
  });
  // Two ranks take SIGUSR1 as the request to save; a second request would kill them at once.
  const Supervision result = Run(Program({"on_usr1=75", "pid_of_rank=" + folder_ + "/pid", "sleep"}, 2),
                                 {.grace = kPatience, .save = kPatience});
  sender.join();
  // The run may have ended on the agent's signal before this process got its own.
  while (held.Next() != 0) continue;
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  for (const ProcessEnd& end : result.ends) EXPECT_EQ(end.exit_status, 75) << end.child << " signal " << end.signal;
}

// SIGTERM for an agent is that of the whole job, which is killed soon: ranks that have not saved until then are told
// of.
TEST_F(FleetTest, ARunThatCannotSaveInTimeEndsBeforeItsJobIsKilled) {
  const int agent = StartAgent(0);
  Come(1);
  std::thread sender([&] {
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(folder_ + "/pid0"); }));
    kill(agent, SIGTERM);
  });
  RankProgram program = Program({"pid_of_rank=" + folder_ + "/pid", "sleep"}, 1);
  program.holds_stop_signal = true;  // and never asks for it
  const Supervision result = Run(program, {.grace = kPatience, .save = kPatience, .until_killed = 1ms});
  sender.join();
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  EXPECT_TRUE(result.out_of_time);
  ASSERT_EQ(result.ends.size(), 1u);
  EXPECT_EQ(result.ends[0].signal, kEndSignal);
}

// The node is slow to start its ranks: nobody waits for it who shall end.
TEST_F(FleetTest, ASignalIsHeardWhileRanksAreStarted) {
  const int agent = StartAgent(0);
  Come(1);
  kill(agent, SIGSTOP);
  const HeldSignals held;
  kill(getpid(), SIGTERM);
  const absl::StatusOr<std::unique_ptr<Processes>> processes = fleet_->Start(Program({"sleep"}, 1));
  kill(agent, SIGCONT);
  ASSERT_TRUE(processes.ok()) << processes.status();
  const Supervision result =
      Supervise(**processes, [](int, bool, std::string_view) {}, {.grace = std::chrono::milliseconds(kPatience)});
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  ASSERT_EQ(result.ends.size(), 1u);
  EXPECT_EQ(result.ends[0].signal, kEndSignal) << result.ends[0].unreachable;
}

// Its ranks have ended, and the next life has not begun: there is nobody else whom the signal could mean.
TEST_F(FleetTest, ASignalToAnAgentBetweenTwoLivesEndsIt) {
  const int agent = StartAgent(0);
  Come(1);
  EXPECT_EQ(Run(Program({}, 1)).ends.size(), 1u);
  kill(agent, SIGTERM);
  int status = 0;
  EXPECT_TRUE(Eventually([&] { return waitpid(agent, &status, WNOHANG) == agent; }));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
  std::erase(agents_, agent);
}

TEST_F(FleetTest, ASignalToAnAgentInterruptsTheRunOnce) {
  const int first = StartAgent(0), second = StartAgent(1);
  Come(2);
  std::thread sender([&] {
    EXPECT_TRUE(Eventually(
        [&] { return std::filesystem::exists(folder_ + "/pid0") && std::filesystem::exists(folder_ + "/pid3"); }));
    for (int agent : {first, second}) kill(agent, SIGTERM);
  });
  const Supervision result = Run(Program({"pid_of_rank=" + folder_ + "/pid", "sleep"}), {.grace = kPatience});
  sender.join();
  EXPECT_EQ(result.interrupted_by, SIGTERM);
  for (const ProcessEnd& end : result.ends)
    EXPECT_EQ(end.signal, kEndSignal) << end.child << " exit " << end.exit_status << " " << end.unreachable;
}

}  // namespace
}  // namespace planwright
