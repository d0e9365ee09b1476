// Measures what a head costs with many agents, which are processes of this machine: how long they take to join, what
// the head uses while nothing happens, and how soon a rank on each node is started, and ended when one of them fails.
//   agents_bench [NODES]
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/run/agents/agent.h"
#include "planner/run/agents/fleet.h"
#include "planner/run/launch/supervise.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Processor time of the head alone: agents are other processes.
double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

double Megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:" && status >> word) return std::atof(word.c_str()) / 1024;
  }
  return 0;
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return 1;
}

int Run(int nodes) {
  std::string folder = (std::filesystem::temp_directory_path() / "planwright_agents_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  std::filesystem::create_directories(folder + "/logs");
  const std::string file = folder + "/head.json";
  absl::StatusOr<std::unique_ptr<Fleet>> fleet = Fleet::Open({.file = file});
  if (!fleet.ok()) return Fail(fleet.status());
  const auto wait = [&](int count, std::chrono::milliseconds patience) {
    int signal = 0;
    return (*fleet)->WaitForAgents(
        count, patience, [] { return std::string(); }, signal);
  };

  auto start = Clock::now();
  std::vector<int> agents;
  for (int node = 0; node < nodes; ++node) {
    const int agent = fork();
    if (agent == 0) std::_Exit(RunAgent({.file = file, .node = node}).ok() ? 0 : 1);
    agents.push_back(agent);
  }
  if (absl::Status came = wait(nodes, 300s); !came.ok()) return Fail(came);
  std::printf("%d nodes\n  joined after        %8.2f s\n", nodes, Since(start));

  constexpr auto kIdle = 20s;
  double cpu = CpuSeconds();
  (void)wait(nodes + 1, kIdle);
  std::printf("  idle: of a core     %8.2f %%\n  resident memory     %8.1f MB\n", (CpuSeconds() - cpu) / 20 * 100,
              Megabytes());

  RankProgram program = {.run_dir = folder,
                         .arguments = {InBuild("bin/fake_rank"), "pid_of_rank=" + folder + "/pid", "sleep"},
                         .variables = {},
                         .world_size = nodes,
                         .ranks_per_node = 1};
  start = Clock::now();
  cpu = CpuSeconds();
  absl::StatusOr<std::unique_ptr<Processes>> ranks = (*fleet)->Start(program);
  if (!ranks.ok()) return Fail(ranks.status());
  std::printf("  a rank each started %8.2f s, of which the head computes %.2f s\n", Since(start), CpuSeconds() - cpu);
  start = Clock::now();
  cpu = CpuSeconds();
  int pid = 0;
  std::ifstream(folder + "/pid" + std::to_string(nodes - 1)) >> pid;
  kill(pid, SIGKILL);
  const Supervision result = Supervise(**ranks, [](int, bool, std::string_view) {});
  const bool right = result.cause && result.cause->child == nodes - 1 &&
                     result.ends.size() == static_cast<size_t>(nodes) && result.cause->signal == SIGKILL;
  std::printf("  one dies, all gone  %8.2f s, of which the head computes %.2f s; the cause is %s\n", Since(start),
              CpuSeconds() - cpu, right ? "right" : "WRONG");
  ranks->reset();
  fleet->reset();
  for (int agent : agents) waitpid(agent, nullptr, 0);
  std::filesystem::remove_all(folder);
  return right ? 0 : 1;
}

}  // namespace
}  // namespace planwright::testing

int main(int count, char** words) { return planwright::testing::Run(count > 1 ? std::atoi(words[1]) : 1000); }
