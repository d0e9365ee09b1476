// The kernel's count of processes that it killed for memory, from files as systems have them.
#include "planner/run/launch/memory_kills.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace planwright {
namespace {

namespace fs = std::filesystem;

class MemoryKillsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = ::testing::TempDir() + "kills_XXXXXX";
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void Expect(int64_t count, const std::string& where) {
    const MemoryKills kills = ReadMemoryKills(root_);
    EXPECT_EQ(kills.count, count);
    EXPECT_EQ(kills.where, where);
  }
  std::string root_;
};

TEST_F(MemoryKillsTest, OfVersion2) {
  Write("/proc/self/cgroup", "0::/system.slice/job_7\n");
  Write("/sys/fs/cgroup/system.slice/job_7/memory.events", "low 0\nhigh 3\nmax 9\noom 2\noom_kill 2\n");
  Write("/sys/fs/cgroup/system.slice/job_7/memory.max", "2147483648\n");
  Expect(2, "the cgroup /system.slice/job_7 (limit 2.15 GB)");
  Write("/sys/fs/cgroup/system.slice/job_7/memory.max", "max\n");
  Expect(2, "the cgroup /system.slice/job_7");
}

TEST_F(MemoryKillsTest, OfVersion1EvenBesideVersion2) {
  Write("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/slurm/job_7\n0::/\n");
  Write("/sys/fs/cgroup/memory/slurm/job_7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  Write("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "9223372036854771712\n");
  Expect(5, "the cgroup /slurm/job_7");
}

TEST_F(MemoryKillsTest, InAContainerThatSeesItsOwnCgroupAsTheTop) {
  Write("/proc/self/cgroup", "4:memory:/docker/ab12\n");
  Write("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill 1\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000000\n");
  Expect(1, "the cgroup /docker/ab12 (limit 1 GB)");
}

TEST_F(MemoryKillsTest, OfTheMachineWhereNoCgroupCanBeRead) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/proc/vmstat", "nr_free_pages 1\noom_kill 7\n");
  Expect(7, "this machine");
}

TEST_F(MemoryKillsTest, OfASystemThatCountsNothing) {
  Expect(0, "");
  Write("/proc/self/cgroup", "nonsense\n0::\n::\n");
  Write("/proc/vmstat", "oom_kill many\n");
  Expect(0, "");
}

TEST(MemoryKills, OfThisMachineCanBeRead) { EXPECT_NE(ReadMemoryKills().where, ""); }

}  // namespace
}  // namespace planwright
