#include "tests/cli/limited_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planwright::testing {
namespace {

constexpr int kPatience = 600;  // seconds; only a program that never ends takes so long, even on a slow machine

}  // namespace

LimitedEnd RunLimited(const std::string& program, const std::vector<std::string>& arguments, rlim_t memory) {
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  // The caller may hold a large input: vfork does not copy its page tables. Until execv the child makes system calls
  // only.
  const pid_t child = vfork();
  if (child == 0) {
    const rlimit limit = {memory, memory};
    setrlimit(RLIMIT_AS, &limit);
    alarm(kPatience);
    const int nowhere = open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) dup2(nowhere, fd);
    execv(program.c_str(), words.data());
    _exit(127);
  }
  LimitedEnd end;
  rusage used{};
  wait4(child, &end.status, 0, &used);
  end.seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  end.megabytes = used.ru_maxrss / 1024.0;
  return end;
}

}  // namespace planwright::testing
