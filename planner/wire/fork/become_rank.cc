#include "planner/wire/fork/become_rank.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "planner/wire/fork/fork_request.h"

namespace planwright {
namespace {

// 0: the system does not tell.
int ThreadsOfProcess() {
  std::error_code error;
  return static_cast<int>(std::distance(std::filesystem::directory_iterator("/proc/self/task", error), {}));
}

// In the new process, and with calls alone that a signal handler may make. Its parent is the process that forks until
// that has ended, then the launcher.
void Settle(const ForkRequest& request, const ForkedRank& rank) {
  setpgid(0, 0);
  const ToldRank told = {rank.local_rank, getpid()};
  [[maybe_unused]] const ssize_t written = write(request.tell, &told, sizeof told);
  close(request.tell);
  dup2(rank.output, 1);
  dup2(rank.errors, 2);
  for (const ForkedRank& other : request.ranks) {
    for (const int descriptor : {other.output, other.errors}) {
      if (descriptor > 2) close(descriptor);
    }
  }
  char byte = 0;
  ssize_t count = 0;
  do {
    count = read(request.go, &byte, 1);
  } while (count < 0 && errno == EINTR);
  close(request.go);
  if (count != 1) _exit(0);  // there is no launcher any more
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the launcher died before prctl took effect, no SIGKILL will come.
  if (getppid() != request.launcher) _exit(0);
}

void SetNumbers(const ForkedRank& rank) {
  setenv("RANK", std::to_string(rank.rank).c_str(), 1);
  setenv("LOCAL_RANK", std::to_string(rank.local_rank).c_str(), 1);
}

// The words of this process's command line, each with its 0; empty if the system does not tell.
std::string CommandLine() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Where a library has started a thread, a lock that it holds would stay locked in the ranks for ever. So each is this
// program anew, and loads it once more.
absl::Status StartAnew(const ForkRequest& request) {
  std::string line = CommandLine();
  std::vector<char*> arguments;
  for (size_t at = 0; at < line.size(); at += std::strlen(line.data() + at) + 1) arguments.push_back(line.data() + at);
  if (arguments.empty()) return absl::ResourceExhaustedError("cannot read /proc/self/cmdline, which ranks need");
  arguments.push_back(nullptr);
  for (const ForkedRank& rank : request.ranks) {
    SetNumbers(rank);
    const int pid = fork();
    if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("cannot start a process: ", std::strerror(errno)));
    if (pid > 0) continue;
    Settle(request, rank);
    execve("/proc/self/exe", arguments.data(), environ);
    _exit(127);
  }
  _exit(0);
}

}  // namespace

absl::Status BecomeRank() {
  const char* text = std::getenv(kForkVariable);
  if (text == nullptr) return absl::OkStatus();
  const absl::StatusOr<ForkRequest> request = ReadForkRequest(text);
  if (!request.ok()) return request.status();
  unsetenv(kForkVariable);
  if (ThreadsOfProcess() > 1) return StartAnew(*request);
  for (const ForkedRank& rank : request->ranks) {
    const int pid = fork();
    if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("cannot start a process: ", std::strerror(errno)));
    if (pid == 0) {
      Settle(*request, rank);
      SetNumbers(rank);
      return absl::OkStatus();
    }
  }
  _exit(0);
}

}  // namespace planwright
