// Causes that are told apart, each made to happen: how the run ends, which rank it names, and what the others were in.
// On CPU ranks. faulty_rank_test has ranks that are killed, stopped or hang; storage_test has disks that are full.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Causes : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (fs::temp_directory_path() / "planwright_causes_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    for (pid_t pid : ProcessesWith(folder_)) kill(pid, SIGKILL);
    Eventually([&] { return ProcessesWith(folder_).empty(); });
    fs::remove_all(folder_);
  }

  // A run with a fault on `rank`, in step 5. The encoder is on rank 0, the language model on rank 1, unless `overrides`
  // say something else. `shell`: what a shell does before it becomes the launcher.
  void Run(const std::string& fault, int rank, const std::vector<std::string>& overrides = {},
           const std::string& shell = "") {
    std::vector<std::string> argv = {"/bin/sh",
                                     "-c",
                                     shell + " exec \"$@\"",
                                     "sh",
                                     InBuild("bin/plan"),
                                     "launch",
                                     InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                     "modules.language.placement.first_rank=1",
                                     "budget.train_samples=320",
                                     "budget.learning_rate.decay_samples=320"};
    argv.insert(argv.end(), overrides.begin(), overrides.end());
    argv.insert(argv.end(),
                {"--local", "--yes", "--executor", InBuild("bin/failing_executor"), "--run-dir", folder_ + "/run"});
    const Started launch = StartProgram(
        argv,
        {"PLANWRIGHT_FAULT=" + fault, "PLANWRIGHT_FAULT_RANK=" + std::to_string(rank), "PLANWRIGHT_FAULT_STEP=5",
         "PLANWRIGHT_FAULT_SECONDS=45", "PLANWRIGHT_FAULT_MARK=" + folder_ + "/mark"},
        folder_ + "/output");
    status_ = WaitFor(launch.pid, kPatience);
    output_ = ReadAll(launch.output);
    outcome_ = nlohmann::json::parse(ReadAll(folder_ + "/run/outcome.json"), nullptr, false);
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(folder_).empty(); })) << "a process is left";
    ASSERT_TRUE(outcome_.is_object()) << output_;
  }

  void ExpectEnd(int status, int rank) {
    EXPECT_EQ(status_, status) << output_;
    EXPECT_EQ(outcome_.at("exit_code"), status);
    EXPECT_EQ(outcome_.value("rank", -1), rank) << outcome_;
  }
  std::string Text(const char* key) const {
    const auto found = outcome_.find(key);
    return found != outcome_.end() && found->is_string() ? found->get<std::string>() : "";
  }
  std::vector<std::string> Others() const { return outcome_.value("others", std::vector<std::string>()); }

  std::string folder_, output_;
  std::optional<int> status_;
  nlohmann::json outcome_;
};

TEST_F(Causes, AKilledRankLeavesOthersThatWaitForIt) {
  Run("kill", 1);
  ExpectEnd(kExitPeerLost, 1);
  EXPECT_EQ(Text("cause"), "rank 1 was killed by SIGKILL");
  ASSERT_EQ(Others().size(), 1u);
  EXPECT_THAT(Others()[0], StartsWith("rank 0 "));
  EXPECT_THAT(Others()[0], HasSubstr("in step 5 > "));
  EXPECT_THAT(output_, HasSubstr("\n  " + Others()[0] + "\n"));
}

// The deadlines are the recipe's: no variable is set.
TEST_F(Causes, AHangIsNoticedAtTheDeadlineOfTheRecipe) {
  Run("endless", 1, {"launch.deadline.floor=20", "launch.deadline.first_step=600"});
  ExpectEnd(kExitHang, 1);
  EXPECT_EQ(Text("cause"), "rank 1 hung");
  EXPECT_THAT(Text("instruction"), HasSubstr("step 5 > "));
  EXPECT_EQ(Text("message").find("600"), std::string::npos) << Text("message");
}

// Bytes move on one rank, longer than any deadline. All others wait for it where they save the next checkpoint.
TEST_F(Causes, ADiskThatIsSlowOnOneRankIsNone) {
  Run("slow_disk", 1, {"launch.deadline.floor=15", "launch.deadline.first_step=15", "checkpoint.every_steps=10"});
  EXPECT_EQ(status_, kExitSuccess) << output_;
  EXPECT_TRUE(fs::exists(folder_ + "/mark"));
  EXPECT_TRUE(fs::exists(folder_ + "/run/checkpoints/step-00000010.life-1/manifest.json"));
  EXPECT_THAT(output_, HasSubstr("; training waited "));
}

// A group of its own with a limit, in the version of cgroups that this machine has.
class MemoryCgroup {
 public:
  explicit MemoryCgroup(const char* bytes) {
    std::ifstream own("/proc/self/cgroup");
    for (std::string line; std::getline(own, line);) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      const std::string controllers = line.substr(first + 1, second - first - 1), name = line.substr(second + 1);
      if (controllers == "memory") Make("/sys/fs/cgroup/memory" + name, "memory.limit_in_bytes", bytes);
      if (controllers.empty()) Make("/sys/fs/cgroup" + name, "memory.max", bytes);
    }
  }
  ~MemoryCgroup() {
    if (path_.empty()) return;
    rmdir(path_.c_str());
  }
  bool made() const { return !path_.empty(); }
  std::string enter() const { return "echo $$ > " + path_ + "/cgroup.procs &&"; }

 private:
  void Make(const std::string& parent, const std::string& limit, const char* bytes) {
    const std::string path = parent + "/planwright_causes_" + std::to_string(getpid());
    if (made() || mkdir(path.c_str(), 0755) != 0) return;
    std::ofstream file(path + "/" + limit);
    file << bytes << std::flush;
    if (file)
      path_ = path;
    else
      rmdir(path.c_str());
  }

  std::string path_;
};

TEST_F(Causes, ARankThatTheKernelKilledForMemory) {
  const MemoryCgroup group("1500000000");
  if (!group.made()) GTEST_SKIP() << "no cgroup with a memory limit can be made here";
  Run("memory", 1, {}, group.enter());
  // The kernel chooses whom it kills. It takes another one if the first one is slow to give its memory back.
  const int rank = outcome_.value("rank", -1);
  EXPECT_THAT(rank, AnyOf(0, 1));
  ExpectEnd(kExitHostMemory, rank);
  EXPECT_THAT(Text("cause"), StartsWith("rank " + std::to_string(rank) +
                                        " was killed by the kernel: host memory ran out in the cgroup /"));
  EXPECT_THAT(Text("cause"), HasSubstr("(limit 1.5 GB)"));
  EXPECT_THAT(Text("instruction"), HasSubstr("step 5 "));
}

TEST_F(Causes, MemoryThatIsRefused) {
  Run("refused", 1);
  ExpectEnd(kExitHostMemory, 1);
  EXPECT_EQ(Text("cause"), "rank 1 ran out of host memory");
  EXPECT_THAT(Text("message"), HasSubstr("linear"));
}

// By step 5 the thread that writes checkpoints has its own connection to the store.
TEST_F(Causes, AStoreThatIsLost) {
  Run("store", 1, {"checkpoint.every_steps=1"});
  ExpectEnd(kExitStoreLost, 1);
  EXPECT_EQ(Text("cause"), "rank 1 lost the store of the run");
}

TEST_F(Causes, NumbersThatAreNotFinite) {
  Run("nan", 1);
  EXPECT_EQ(status_, kExitNumerics) << output_;
  EXPECT_THAT(Text("message"), HasSubstr("10 steps in a row had a gradient norm that is not finite, in"));
}

// Three ranks of one role; each linear of one of them takes 10 ms longer.
TEST_F(Causes, ASlowRankIsNamedAndTheRunGoesOn) {
  Run("slow", 2, {"modules.language.placement.ranks=4", "batch.micro_samples=2", "cluster.gpus_per_node=5"});
  EXPECT_EQ(status_, 0) << output_;
  EXPECT_THAT(output_, HasSubstr("note: rank 2 (language.s0"));
  ASSERT_EQ(outcome_.at("slow_ranks").size(), 1u) << outcome_;
  EXPECT_EQ(outcome_.at("slow_ranks")[0].at("rank"), 2);
}

}  // namespace
}  // namespace planwright::testing
