#include "planner/base/process/inherited.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace planwright {
namespace {

// In a process of its own, as limits and signals are those of the whole process.
TEST(Inherited, ASoftLimitOfFilesIsRaised) {
  const int pid = fork();
  if (pid == 0) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 16;
    setrlimit(RLIMIT_NOFILE, &limit);
    SettleInherited();
    getrlimit(RLIMIT_NOFILE, &limit);
    _exit(limit.rlim_cur == limit.rlim_max ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace planwright
